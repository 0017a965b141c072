package samtemplate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const (
	secretARN   = "arn:aws:secretsmanager:us-east-1:123456789012:secret:shop"
	keyARN      = "arn:aws:kms:us-east-1:123456789012:key/k"
	boundaryARN = "arn:aws:iam::123456789012:policy/bound"
)

// propertiesOf are the resources of a type, by name.
func propertiesOf(template *Template, kind string) map[string]map[string]any {
	found := map[string]map[string]any{}
	for _, name := range ofType(template, kind) {
		found[name] = template.Resources[name].Properties
	}
	return found
}

// With a key everything that keeps data is encrypted with it, and everything that reads or writes that may use it.
func TestCompany_Key_EncryptsAllThatKeepsData(t *testing.T) {
	t.Parallel()
	template := evaluate(t, map[string]string{"KmsKey": keyARN, "FifoQueue": "orders", "ServerScopes": "read"})
	for name, queue := range propertiesOf(template, "AWS::SQS::Queue") {
		equal(t, name, queue["KmsMasterKeyId"], any(keyARN))
		if _, both := queue["SqsManagedSseEnabled"]; both {
			t.Errorf("%s is encrypted twice", name)
		}
	}
	equal(t, "Table", at(template.Resources["Table"].Properties, "SSESpecification"), any(map[string]any{
		"SSEEnabled": true, "SSEType": "KMS", "KMSMasterKeyId": keyARN,
	}))
	for name, logs := range propertiesOf(template, "AWS::Logs::LogGroup") {
		equal(t, name, logs["KmsKeyId"], any(keyARN))
	}
	for name, function := range each(template) {
		equal(t, name, function["KmsKeyArn"], any(keyARN))
	}
	want := []string{"kms:Decrypt " + keyARN, "kms:GenerateDataKey " + keyARN}
	for name := range propertiesOf(template, "AWS::IAM::Role") {
		if name == "DeploymentRole" {
			continue // it moves aliases, and reads nothing
		}
		got := slices.DeleteFunc(allowed(t, template, name), func(p string) bool { return !strings.HasPrefix(p, "kms:") })
		equal(t, name, got, want)
	}
	for _, output := range []string{"TriggerPolicy", "OperatorPolicy", "ReadPolicy"} {
		var document any
		if err := json.Unmarshal([]byte(fmt.Sprint(template.Outputs[output].Value)), &document); err != nil {
			t.Fatalf("%s: %v", output, err)
		}
		got := slices.DeleteFunc(statements(t, output, document), func(p string) bool { return !strings.HasPrefix(p, "kms:") })
		equal(t, output, got, want)
	}
}

func TestCompany_Network_IsTheFunctionsOwn(t *testing.T) {
	t.Parallel()
	template := evaluate(t, map[string]string{"Subnets": "subnet-1,subnet-2", "SecurityGroups": "sg-1,sg-2", "ServerScopes": "read"})
	for name, function := range each(template) {
		equal(t, name, function["VpcConfig"], any(map[string]any{
			"SubnetIds": []any{"subnet-1", "subnet-2"}, "SecurityGroupIds": []any{"sg-1", "sg-2"},
		}))
	}
	for _, role := range []string{"BridgeRole", "RelayRole", "TickRole", "ServerRole"} {
		equal(t, role, listAt(template.Resources[role].Properties, "ManagedPolicyArns"), []any{
			"arn:${AWS::Partition}:iam::aws:policy/service-role/AWSLambdaENIManagementAccess",
		})
	}
	for name, function := range each(evaluate(t, nil)) {
		if _, in := function["VpcConfig"]; in {
			t.Errorf("%s is in a VPC by default", name)
		}
	}
}

// Each function may read its own secrets, and no other function's.
func TestCompany_Secrets_AreEachFunctionsOwn(t *testing.T) {
	t.Parallel()
	const parameter = "arn:aws:ssm:us-east-1:123456789012:parameter/shop/TOKEN"
	template := evaluate(t, map[string]string{
		"BridgeSecrets": secretARN + "," + parameter, "TickSecrets": parameter, "ServerSecrets": parameter, "ServerScopes": "read",
	})
	for role, want := range map[string][]string{
		"BridgeRole": {
			"secretsmanager:GetSecretValue " + secretARN, "secretsmanager:GetSecretValue " + parameter,
			"ssm:GetParameter " + secretARN, "ssm:GetParameter " + parameter,
		},
		"RelayRole":  {},
		"TickRole":   {"secretsmanager:GetSecretValue " + parameter, "ssm:GetParameter " + parameter},
		"ServerRole": {"secretsmanager:GetSecretValue " + parameter, "ssm:GetParameter " + parameter},
	} {
		got := slices.DeleteFunc(allowed(t, template, role), func(p string) bool {
			return !strings.HasPrefix(p, "secretsmanager:") && !strings.HasPrefix(p, "ssm:")
		})
		slices.Sort(want)
		equal(t, role, got, want)
	}
	for name, function := range each(template) {
		want := "bridge=" + secretARN + "," + parameter + " relay= tick=" + parameter
		if name == "Server" { // it begins anew with its own alone
			want = "server=" + parameter
		}
		equal(t, name, variables(function)["RUNLANE_SECRETS"], want)
	}
}

func TestCompany_Layers_AreOfEveryFunction(t *testing.T) {
	t.Parallel()
	const one, two = "arn:aws:lambda:us-east-1:123456789012:layer:a:1", "arn:aws:lambda:us-east-1:123456789012:layer:b:2"
	for name, function := range each(evaluate(t, map[string]string{"Layers": one + "," + two, "ServerScopes": "read"})) {
		equal(t, name, listAt(function, "Layers"), []any{one, two})
	}
}

// Every name that the template gives begins with the stack's: several stacks live in one account and Region, and a company that wants
// a prefix gives it to the stack.
func TestCompany_Names_BeginWithTheStacks(t *testing.T) {
	t.Parallel()
	template := evaluate(t, map[string]string{"FifoQueue": "orders", "ServerScopes": "read"})
	named := 0
	for name, r := range template.Resources {
		for property, value := range r.Properties {
			text, isText := value.(string)
			if !isText || !strings.HasSuffix(property, "Name") || strings.HasPrefix(property, "Metric") {
				continue
			}
			named++
			if !strings.HasPrefix(text, "${AWS::StackName}-") {
				t.Errorf("%s has the %s %s", name, property, text)
			}
		}
		if text, isText := r.Properties["Name"].(string); isText && !strings.HasPrefix(text, "${AWS::StackName}-") {
			t.Errorf("%s has the name %s", name, text)
		}
	}
	if named < 7 {
		t.Errorf("%d names were found: the test looks in the wrong place", named)
	}
}

// CloudFormation gives the tags of a stack to every resource that takes some, so the template adds none and has no
// parameter for them. A new type of resource has to be looked up: docs/deploying.md names what takes none.
func TestCompany_TagsOfTheStack_GoToEverythingThatTakesSome(t *testing.T) {
	t.Parallel()
	takes := map[string]bool{
		"AWS::CloudWatch::Alarm":     true,
		"AWS::CloudWatch::Dashboard": false,
		"AWS::DynamoDB::Table":       true,
		"AWS::IAM::Role":             true,
		"AWS::Lambda::Url":           false,
		"AWS::Logs::LogGroup":        true,
		"AWS::SQS::Queue":            true,
		"AWS::SSM::Parameter":        true,
		"AWS::Scheduler::Schedule":   false,
		"AWS::Serverless::Function":  true,
	}
	template := load(t)
	for name, resource := range template.Resources {
		if _, known := takes[resource.Type]; !known {
			t.Errorf("%s: does %s take the tags of its stack?", name, resource.Type)
		}
		if _, own := resource.Properties["Tags"]; own {
			t.Errorf("%s has tags beside those of the stack", name)
		}
	}
	equal(t, "what SAM makes of functions", at(template.Globals, "Function", "PropagateTags"), any(true))
}
