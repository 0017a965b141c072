// Command app makes a stack for each set of properties of sets.json, and writes its template and what was refused.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/cloudformationinclude"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"example.com/app/runlane"
)

func main() {
	var sets map[string]map[string]any
	read("sets.json", &sets)
	root := constructs.NewConstruct(nil, jsii.String("app"))
	for name, set := range sets {
		stack := awscdk.NewStack(root, &name, nil)
		made := runlane.New(stack, jsii.String("Runlane"), props(set))
		write(name+".template.json", made.Template.(*cloudformationinclude.Included).Template)
	}

	stack := awscdk.NewStack(root, jsii.String("related"), nil)
	related := props(map[string]any{"KmsKey": "${Token[key]}", "AlarmTopic": "${Token[topic]}", "Subnets": []any{"${Token[a]}", "${Token[b]}"},
		"SecurityGroups": []any{"${Token[group]}"}})
	related.CodeVariables = &map[string]*string{"SHOP": jsii.String("https://shop.example")}
	made := runlane.New(stack, jsii.String("Runlane"), related)
	reader := &awsiam.Imported{Name: jsii.String("reader")}
	made.GrantRead(reader)
	write("related.template.json", made.Template.(*cloudformationinclude.Included).Template)
	write("granted.json", reader.Statements)

	refused := []string{}
	try := func(scope constructs.Construct, id string, props *runlane.Props) {
		defer func() { refused = append(refused, fmt.Sprint(recover())) }()
		runlane.New(scope, &id, props)
	}
	for i, wrong := range []map[string]any{
		{"BridgeTimeout": 61.0}, {"LogLevel": "LOUD"}, {"FifoQueue": "default"}, {"BridgeBatchSize": 11.0}, {"Subnets": []any{"subnet-1"}},
	} {
		try(awscdk.NewStack(root, jsii.String(fmt.Sprint("wrong", i)), nil), "Runlane", props(wrong))
	}
	try(stack, "Second", props(nil))
	write("refused.json", refused)
}

func props(set map[string]any) *runlane.Props {
	out := &runlane.Props{Code: jsii.String("code")}
	for name, value := range set {
		field := reflect.ValueOf(out).Elem().FieldByName(name)
		if !field.IsValid() {
			panic("Props has no " + name)
		}
		if list, ok := value.([]any); ok {
			texts := []*string{}
			for _, one := range list {
				texts = append(texts, jsii.String(one.(string)))
			}
			value = texts
		}
		field.Set(reflect.New(field.Type().Elem()))
		field.Elem().Set(reflect.ValueOf(value))
	}
	return out
}

func read(path string, into any) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		panic(err)
	}
}

func write(path string, value any) {
	text, err := json.Marshal(value)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		panic(err)
	}
}
