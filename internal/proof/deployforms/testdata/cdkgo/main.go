// Command app makes a stack for each set of properties in sets.json, then what the construct does with other resources and refuses.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"example.com/app/runlane"
)

func main() {
	defer jsii.Close()
	app := awscdk.NewApp(&awscdk.AppProps{AnalyticsReporting: jsii.Bool(false), Outdir: jsii.String("cdk.out")})
	var sets map[string]map[string]any
	read("sets.json", &sets)
	for name, set := range sets {
		runlane.New(awscdk.NewStack(app, &name, nil), jsii.String("Runlane"), props(set))
	}

	stack := awscdk.NewStack(app, jsii.String("related"), nil)
	topic := awssns.NewTopic(stack, jsii.String("Topic"), nil)
	related := props(nil)
	related.AlarmTopic = topic.TopicArn()
	related.KmsKey = awskms.NewKey(stack, jsii.String("Key"), nil).KeyArn()
	related.CodeVariables = &map[string]*string{"SHOP": jsii.String("https://shop.example")}
	made := runlane.New(stack, jsii.String("Runlane"), related)
	grants := map[string]func(awsiam.IGrantable){"Caller": made.GrantTrigger, "Reader": made.GrantRead, "Operator": made.GrantOperate}
	for name, grant := range grants {
		anyone := &awsiam.RoleProps{AssumedBy: awsiam.NewAccountRootPrincipal()}
		grant(awsiam.NewRole(stack, &name, anyone))
	}
	topic.GrantPublish(made.Role)

	refused := []string{}
	try := func(scope constructs.Construct, id string, props *runlane.Props) {
		defer func() { refused = append(refused, fmt.Sprint(recover())) }()
		runlane.New(scope, &id, props)
	}
	other := awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String("wrong.out")})
	for i, wrong := range []map[string]any{
		{"BridgeTimeout": 61.0}, {"LogLevel": "LOUD"}, {"FifoQueue": "default"}, {"BridgeBatchSize": 11.0}, {"Subnets": []any{"subnet-1"}},
	} {
		try(awscdk.NewStack(other, jsii.String(fmt.Sprint("wrong", i)), nil), "Runlane", props(wrong))
	}
	try(stack, "Second", props(nil))
	stack.Node().TryRemoveChild(jsii.String("Second"))
	write("refused.json", refused)
	app.Synth(nil)
}

func props(set map[string]any) *runlane.Props {
	out := &runlane.Props{Code: jsii.String("code"), ServerCode: jsii.String("code")}
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
