package runbook_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/proof/e2e/samtemplate"
	"github.com/runlane/runlane-go/internal/tools/runbook"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// text is all of the pages.
func text(t *testing.T) (all string) {
	t.Helper()
	for _, name := range runbook.Documents {
		all += read(t, name)
	}
	return all
}

func document(t *testing.T) []runbook.Block {
	t.Helper()
	blocks, err := runbook.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

func template(t *testing.T) *samtemplate.Template {
	t.Helper()
	loaded, err := samtemplate.Load(filepath.Join(root, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func theInstallation(t *testing.T) *runbook.Installation {
	t.Helper()
	var i runbook.Installation
	for _, match := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`).FindAllStringSubmatch(read(t, "Makefile")+read(t, "build.mk"), -1) {
		i.Targets = append(i.Targets, match[1])
	}
	for name := range template(t).Parameters {
		i.Parameters = append(i.Parameters, name)
	}
	return &i
}

// parserFault asks the real parser of the command line about a command, without executing it: it reads all flags before it helps.
func parserFault(t *testing.T, c *runbook.Command) string {
	t.Helper()
	if out, code := runlaneCommand(t, nil, append(slices.Clone(c.Words[1:]), "--help")...); code != 0 {
		return out
	}
	return ""
}

// TestAccountCommands_Exist checks every command, also those that are executed.
func TestAccountCommands_Exist(t *testing.T) {
	t.Parallel()
	i, account := theInstallation(t), 0
	for _, block := range document(t) {
		for _, c := range block.Steps {
			if err := i.Check(&c); err != nil {
				t.Errorf("%s: %v", block.Document, err)
			}
			if c.Words[0] == "runlane" {
				if fault := parserFault(t, &c); fault != "" {
					t.Errorf("%s:%d: %s\n%s", block.Document, c.Line, c.Text, fault)
				}
			} else if !block.Account {
				t.Errorf("%s:%d: %s cannot be executed here: mark the block", block.Document, c.Line, c.Words[0])
			}
			if block.Account {
				account++
			}
		}
	}
	if err := runbook.CheckBuilds(document(t)); err != nil {
		t.Error(err)
	}
	if account < 30 {
		t.Errorf("only %d commands need an account", account)
	}
}

// An override that is to last has to be in samconfig.toml too, or the next deployment takes it back. Deployment is none of those: it is
// set back by the section itself.
func TestLastingOverrides_SayWhereTheyLast(t *testing.T) {
	t.Parallel()
	const place = "Change a parameter"
	checked := 0
	for _, section := range strings.Split(text(t), "\n## ") {
		title, _, _ := strings.Cut(section, "\n")
		overrides := regexp.MustCompile(`(?m)--parameter-overrides (.+)$`).FindAllStringSubmatch(section, -1)
		last := ""
		for _, match := range overrides {
			for word := range strings.FieldsSeq(match[1]) {
				name, value, _ := strings.Cut(word, "=")
				if name != "Deployment" && title != place && !strings.Contains(section, "#change-a-parameter)") {
					t.Errorf("%q does not say where %s lasts", title, name)
				}
				if name == "Deployment" {
					last = value
				}
				checked++
			}
		}
		if last == "AllAtOnce" {
			t.Errorf("%q leaves the stack without canaries", title)
		}
	}
	if checked < 10 {
		t.Errorf("only %d overrides", checked)
	}
}

func TestNames_AreThoseOfTheTemplate(t *testing.T) {
	t.Parallel()
	text, loaded := text(t), template(t)
	for placeholder, output := range runbook.Placeholders {
		if _, exists := loaded.Outputs[output]; output != "" && !exists {
			t.Errorf("%s is the output %s, which the template does not have", placeholder, output)
		}
	}
	held := regexp.MustCompile(`LogicalResourceId/(\w+)`).FindAllStringSubmatch(text, -1)
	for _, match := range held {
		if value := fmt.Sprint(loaded.Resources[match[1]].Properties["Value"]); !strings.Contains(value, "ExistingTable") {
			t.Errorf("a policy holds %s, which does not follow the table: %s", match[1], value)
		}
	}
	if len(held) == 0 {
		t.Error("no policy holds the table")
	}
	_, table, _ := strings.Cut(text, "| Alarm | Begin at |")
	table, _, _ = strings.Cut(table, "\n\n")
	var told, wanted []string
	for _, match := range regexp.MustCompile("`([A-Za-z]+Alarm)`").FindAllStringSubmatch(table, -1) {
		told = append(told, match[1])
	}
	for name, resource := range loaded.Resources {
		if resource.Type == "AWS::CloudWatch::Alarm" {
			wanted = append(wanted, name)
		}
	}
	slices.Sort(told)
	slices.Sort(wanted)
	if diff := cmp.Diff(wanted, slices.Compact(told)); diff != "" {
		t.Errorf("alarms (-template +runbook):\n%s", diff)
	}
	for _, match := range regexp.MustCompile("`([A-Za-z]+Alarm)`").FindAllStringSubmatch(text, -1) {
		if !slices.Contains(wanted, match[1]) {
			t.Errorf("there is no alarm %s", match[1])
		}
	}
}

// flags of the one command that begins so.
func flags(t *testing.T, command string) map[string]string {
	t.Helper()
	for _, block := range document(t) {
		for _, c := range block.Steps {
			if !strings.HasPrefix(c.Text, command) {
				continue
			}
			found := map[string]string{}
			for n, word := range c.Words {
				if strings.HasPrefix(word, "--") {
					found[word] = ""
					if n+1 < len(c.Words) {
						found[word] = c.Words[n+1]
					}
				}
			}
			return found
		}
	}
	t.Fatalf("the document has no command %s", command)
	return nil
}

func TestWhatIsMadeAgain_IsAsDeployed(t *testing.T) {
	t.Parallel()
	for name, deadLetters := range map[string]string{
		"STACK-work": "WORK_DEAD_LETTERS_ARN", "STACK-work.fifo": "FIFO_WORK_DEAD_LETTERS_ARN",
	} {
		wanted, err := infra.QueueAttributes(name, deadLetters, nil)
		if err != nil {
			t.Fatal(err)
		}
		queue, got := flags(t, "aws sqs create-queue --queue-name "+name+" "), map[string]string{}
		if err := json.Unmarshal([]byte(queue["--attributes"]), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("queue %s (-infra +runbook):\n%s", name, diff)
		}
	}
	table := infra.TableInput("RESTORED")
	for what, pair := range map[string][2]string{
		"stream": {
			flags(t, "aws dynamodb update-table --table-name RESTORED --stream")["--stream-specification"],
			"StreamEnabled=true,StreamViewType=" + string(table.StreamSpecification.StreamViewType),
		},
		"expiration": {flags(t, "aws dynamodb update-time-to-live")["--time-to-live-specification"], "Enabled=true,AttributeName=" + infra.TTLAttribute},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %s, as deployed %s", what, pair[0], pair[1])
		}
	}
}

// TestOperations_AreThoseOfTheSDK compares the list with the inputs of the clients, for the services whose clients are here.
func TestOperations_AreThoseOfTheSDK(t *testing.T) {
	t.Parallel()
	clients := map[string]reflect.Type{"sqs": reflect.TypeFor[*sqs.Client](), "dynamodb": reflect.TypeFor[*dynamodb.Client]()}
	pascal := func(kebab string) string {
		var b strings.Builder
		for part := range strings.SplitSeq(kebab, "-") {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
		return b.String()
	}
	checked := 0
	for operation, allowed := range runbook.Operations() {
		words := strings.Fields(operation)
		client, known := clients[words[1]]
		if !known || words[2] == "wait" {
			continue
		}
		checked++
		method, exists := client.MethodByName(pascal(words[2]))
		if !exists {
			t.Errorf("%s: no such operation", operation)
			continue
		}
		input := method.Type.In(2).Elem()
		for _, rule := range allowed {
			name := pascal(strings.TrimPrefix(strings.TrimRight(strings.TrimPrefix(rule, "--"), "!?"), "no-"))
			if _, exists := input.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) }); !exists {
				t.Errorf("%s: no such flag %s", operation, rule)
			}
		}
	}
	if checked < 12 {
		t.Errorf("only %d operations were compared", checked)
	}
}
