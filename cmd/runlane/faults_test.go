package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/internal/proof/awstest"
)

// Marks that may stand in no output: what the credentials are, and what payloads hold.
const (
	secretKey     = "very-secret-key"
	secretToken   = "very-secret-token/of+a=session"
	secretPayload = `{"to":"very-secret-recipient"}`
	tokenKey      = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="
)

// someToken was signed with tokenKey for some-run, and does not expire before the year 2286.
const someToken = "rlt1.eyJlIjoiZGVmYXVsdCIsInIiOiJzb21lLXJ1biIsImMiOjAsIm4iOiJhcHByb3ZlZCIsIngiOjk5OTk5OTk5O" +
	"Tk5OTl9.5onpdUsJ6ab-O6vf5CaFq-k5PNuYSvv4kl5s_b8lKE4"

// calls are one call of each command that needs a deployment, by its path.
var calls = map[string][]string{
	"bench":               {"emails.welcome", secretPayload, "--runs", "1", "--yes"},
	"deadletters list":    {},
	"deadletters requeue": {"--all", "--yes"},
	"doctor":              {},
	"export":              {},
	"flows cancel":        {"some-flow"},
	"flows list":          {},
	"flows retry":         {"some-flow"},
	"flows show":          {"some-flow"},
	"idempotency get":     {"emails.welcome", "u_1"},
	"idempotency reset":   {"emails.welcome", "u_1"},
	"mcp":                 {},
	"queues list":         {},
	"queues pause":        {"mail"},
	"queues resume":       {"mail"},
	"queues stats":        {"mail"},
	"runs answer":         {someToken},
	"runs attempts":       {"some-run"},
	"runs cancel":         {"--all", "--yes"},
	"runs events":         {"some-run"},
	"runs explain":        {"some-run"},
	"runs get":            {"some-run"},
	"runs list":           {},
	"runs logs":           {"some-run"},
	"runs prune":          {"--older-than", "1d", "--yes"},
	"runs receipts":       {"some-run"},
	"runs rerun":          {"some-run"},
	"runs resume":         {"--all", "--yes"},
	"runs retry":          {"some-run"},
	"runs signal":         {"some-run", "approved"},
	"runs steps":          {"some-run"},
	"runs tree":           {"some-run"},
	"runs watch":          {"some-run"},
	"schedules list":      {},
	"schedules next":      {"nightly"},
	"schedules pause":     {"nightly"},
	"schedules resume":    {"nightly"},
	"schedules trigger":   {"nightly"},
	"serve":               {},
	"tasks list":          {},
	"tasks pause":         {"emails.welcome"},
	"tasks resume":        {"emails.welcome"},
	"tick":                {},
	"trigger":             {"emails.welcome", secretPayload},
	"worker":              {},
}

// commands are the paths of those that do something, as docs/commands.md has them: a test of cli holds it against the tree.
func commands(t *testing.T) []string {
	t.Helper()
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, found := range regexp.MustCompile(`(?m)^## ([a-z]+(?: [a-z]+)*)(?: ([^a-z].*|bash.*))?$`).FindAllStringSubmatch(string(document), -1) {
		if found[1] != "runlane" && found[2] != "COMMAND" {
			paths = append(paths, found[1])
		}
	}
	return paths
}

// TestBinary_EveryCommand_UnderEveryFault_SaysWhatToDo goes through the program's own opener to an endpoint with each fault.
func TestBinary_EveryCommand_UnderEveryFault_SaysWhatToDo(t *testing.T) {
	t.Parallel()
	local := []string{"backup", "import", "completion", "dev", "functions add", "init", "queues add", "restore", "token", "version"} // they reach no deployment
	paths := slices.DeleteFunc(commands(t), func(path string) bool { return slices.Contains(local, path) })
	if len(paths) < 20 {
		t.Fatalf("the document names %d commands", len(paths))
	}
	for fault, c := range map[awstest.Fault]struct {
		code       int
		says, next string
	}{
		awstest.Down:         {cli.ExitUnavailable, "DynamoDB is not reachable", "check AWS_ENDPOINT_URL and the network"},
		awstest.Expired:      {cli.ExitUnavailable, "the credentials for AWS have expired", "log in again, or renew them, then repeat"},
		awstest.Unknown:      {cli.ExitUnavailable, "AWS does not accept the credentials", "check the access key, its secret, the profile"},
		awstest.Denied:       {cli.ExitUnavailable, "access denied", "let the policy allow the action that the cause names"},
		awstest.DeniedQueues: {cli.ExitUnavailable, `access to queue \"mail\" is denied`, "allow sqs:GetQueueAttributes on the queue"},
		awstest.Silent:       {cli.ExitFailed, "the time limit of 100ms is over", "raise --timeout, or leave it out"},
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			endpoint := awstest.Faulty(t, fault)
			p := &program{environment: []string{
				"RUNLANE_TABLE=runs", "RUNLANE_QUEUES=mail=" + endpoint + "/1/mail", "RUNLANE_ENV=", "AWS_MAX_ATTEMPTS=1", "AWS_REGION=eu-west-1",
				"AWS_ACCESS_KEY_ID=AKIATEST", "AWS_SECRET_ACCESS_KEY=" + secretKey, "AWS_SESSION_TOKEN=" + secretToken, "AWS_ENDPOINT_URL=" + endpoint,
				"AWS_ENDPOINT_URL_DYNAMODB=", "AWS_ENDPOINT_URL_SQS=", "RUNLANE_TOKEN_KEYS=" + tokenKey,
			}}
			for n, path := range paths {
				arguments, known := calls[path]
				if !known {
					t.Errorf("%s is called by no test", path)
					continue
				}
				form := []string{"--json", "--verbose"}[n%2]
				args := append(append(strings.Fields(path), arguments...), form)
				code := c.code
				if fault == awstest.Silent {
					args = append(args, "--timeout", "100ms")
				}
				says, next := c.says, c.next
				if fault == awstest.Denied {
					if done, ok := beforeTheStorage[path]; ok {
						code, says, next = done.code, done.says, ""
					}
				}
				out, news := p.run(t, code, args...)
				shown := strings.ReplaceAll(out+news, `"`, `\"`) // of a table too
				shown = strings.ReplaceAll(shown, `\\"`, `\"`)
				if !strings.Contains(shown, says) || !strings.Contains(shown, next) {
					t.Errorf("%v does not say %q and %q:\n%s%s", args, says, next, out, news)
				}
				if strings.Contains(shown, "very-secret") {
					t.Errorf("%v shows a secret:\n%s%s", args, out, news)
				}
			}
		})
	}
}

// beforeTheStorage are commands that say something else, before they need more of the table than to look at it.
var beforeTheStorage = map[string]struct {
	code int
	says string
}{
	"queues resume":     {cli.ExitUsage, "is not paused"},
	"schedules next":    {cli.ExitNotFound, "no definition of schedule"},
	"schedules resume":  {cli.ExitNotFound, "no definition of schedule"},
	"schedules trigger": {cli.ExitNotFound, "no definition of schedule"},
	"tasks resume":      {cli.ExitUsage, "is not paused"},
	"worker":            {cli.ExitUsage, "this program has no tasks to execute"},
}
