package samtemplate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/functionurl"
)

// Without scopes there is nothing of the server, so that a stack that does not want one is as it was.
func TestServer_WithoutScopes_IsNotThere(t *testing.T) {
	t.Parallel()
	without, with := evaluate(t, nil), evaluate(t, withServer)
	var more []string
	for name := range with.Resources {
		if _, ok := without.Resources[name]; !ok {
			more = append(more, name)
		}
	}
	slices.Sort(more)
	equal(t, "resources", more, []string{"Server", "ServerCanaryAlarm", "ServerErrorsAlarm", "ServerLogs", "ServerRole", "ServerUrl"})
	for name, resource := range without.Resources {
		equal(t, name, with.Resources[name], resource)
	}
	for name := range without.Outputs {
		if strings.HasPrefix(name, "Server") {
			t.Errorf("there is an output %s", name)
		}
	}
	equal(t, "URL", with.Outputs["ServerUrl"].Value, any("${ServerUrl.FunctionUrl}"))
	equal(t, "function", with.Outputs["ServerFunction"].Value, any("${Server}"))
}

// IAM decides who calls, and a URL streams unless the function is in a VPC.
func TestServer_URL_IsForWhomIAMLetsIn(t *testing.T) {
	t.Parallel()
	for mode, parameters := range map[string]map[string]string{
		"RESPONSE_STREAM": {"ServerScopes": "read"},
		"BUFFERED":        {"ServerScopes": "read", "Subnets": "subnet-1", "SecurityGroups": "sg-1"},
	} {
		template := evaluate(t, parameters)
		equal(t, "URLs", propertiesOf(template, "AWS::Lambda::Url"), map[string]map[string]any{"ServerUrl": {
			"TargetFunctionArn": "${Server.Alias.AliasArn}", "AuthType": "AWS_IAM", "InvokeMode": mode,
		}})
		for name, f := range each(template) {
			equal(t, name+": a URL besides", f["FunctionUrlConfig"], nil)
			if name == "Server" {
				equal(t, "the function's mode", variables(f)[functionurl.BufferedVariable] == "on", mode == "BUFFERED")
			}
		}
	}
}

// The template sets exactly what the server's program reads, and what all functions have.
func TestServer_Variables_AreThoseThatItsCodeReads(t *testing.T) {
	t.Parallel()
	own := map[string]string{}
	for _, name := range variablesRead(t, "../../../../functionurl") {
		own[name] = ""
	}
	all := each(evaluate(t, map[string]string{"ServerScopes": "read,trigger"}))
	maps.Copy(own, variables(all["Tick"]))
	own[awslane.EventQueuesVariable] = "" // doctor's, behind the URL
	got := variables(all["Server"])
	equal(t, "variables", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(own)))
	equal(t, "role", got[functions.RoleVariable], functionurl.Role)
	equal(t, "scopes", got[functionurl.ScopesVariable], "read,trigger")
}

// It may do in AWS what its callers may do by it: what a program may that looks, or one that operates.
func TestServer_Role_FollowsTheScopes(t *testing.T) {
	t.Parallel()
	for scopes, output := range map[string]string{
		"read": "ReadPolicy", "read,payloads": "ReadPolicy", "payloads,read": "ReadPolicy", "trigger": "OperatorPolicy", "operate": "OperatorPolicy", "read,trigger,operate": "OperatorPolicy",
		"read,payloads,operate": "OperatorPolicy",
	} {
		for _, parameters := range []map[string]string{withFIFO, withExistingTable, {"KmsKey": keyARN}} {
			given := maps.Clone(parameters)
			given["ServerScopes"] = scopes
			template := evaluate(t, given)
			want := append(granted(t, template, output), "logs:CreateLogStream ${ServerLogs.Arn}", "logs:PutLogEvents ${ServerLogs.Arn}")
			slices.Sort(want)
			equal(t, scopes, allowed(t, template, "ServerRole"), want)
		}
	}
}

// Workers need a server that stays: claims wait.
func TestServer_Scopes_AreThoseOfAFunction(t *testing.T) {
	t.Parallel()
	p := load(t).Parameters["ServerScopes"]
	for scopes, allowed := range map[string]bool{
		"": true, "read": true, "read,payloads,trigger,operate": true, "work": false, "read,": false, "read trigger": false, "Read": false,
	} {
		equal(t, scopes, p.allows(scopes), allowed)
	}
}
