//go:build e2e

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/tools/runbook"
)

// deploy builds and deploys the stack, for the first time or as it is, and returns what the tools said.
func (d *deployed) deploy(t *testing.T) string {
	t.Helper()
	var said bytes.Buffer
	stack, err := deployStack(t.Context(), deployOptions{
		name: d.name, root: root, log: io.MultiWriter(d.log, &said), parameters: d.parameters,
	})
	if err != nil {
		t.Fatal(err)
	}
	d.stack = stack
	return said.String()
}

// update deploys the stack with changes to its parameters.
func (d *deployed) update(t *testing.T, changes map[string]string) {
	t.Helper()
	maps.Copy(d.parameters, changes)
	if err := d.stack.update(t.Context(), d.parameters); err != nil {
		t.Fatal(err)
	}
}

// redeploy is an update for [deployed.follow].
func (d *deployed) redeploy(t *testing.T) func(map[string]string) {
	return func(changes map[string]string) { d.update(t, changes) }
}

// wantSent triggers a delivery and waits until the receiver of its address has it and the other has not.
func (d *deployed) wantSent(t *testing.T, delivery webhooks.Delivery, to, notTo *endpoint) {
	t.Helper()
	to.Expect(delivery.ID, []byte(delivery.Payload))
	result, err := d.rt.Trigger(t.Context(), webhooks.Deliver.With(delivery), nil)
	if err != nil {
		t.Fatal(err)
	}
	d.wantSucceeded(t, result.Run)
	if !to.Accepted(delivery.ID) || notTo.Accepted(delivery.ID) {
		t.Errorf("%s has the delivery: %t, %s: %t", to.url, to.Accepted(delivery.ID), notTo.url, notTo.Accepted(delivery.ID))
	}
}

var capitals = regexp.MustCompile(`\b[A-Z][A-Z_]+\b`)

// absent are the commands of the runbook that local AWS knows nothing of, and those that are this test's own business.
var absent = []string{
	"aws deploy ", "aws dynamodb restore-table-to-point-in-time ", "aws logs ", "git checkout ", "sam build", "make ", "read ",
	"sam deploy --stack-name STACK --parameter-overrides Deployment=Canary",
}

// follow executes the commands of a section of the runbook that need an account, each once for every set of values that fills in its
// placeholders. A deployment is one by the stack's parameters.
func (d *deployed) follow(t *testing.T, section string, redeploy func(changes map[string]string), sets ...map[string]string) {
	t.Helper()
	blocks, err := runbook.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	said, mappings := map[string]bool{}, map[string][]string{}
	for _, block := range blocks {
		if block.Section != section || !block.Account {
			continue
		}
		for _, command := range block.Steps {
			if command.Words[0] == "runlane" || slices.ContainsFunc(absent, func(p string) bool { return strings.HasPrefix(command.Text+" ", p) }) {
				continue
			}
			for _, values := range expand(&command, sets, mappings) {
				words := d.fill(t, &command, values)
				line := strings.Join(words, " ")
				switch {
				case said[line] && words[0] == "sam":
				case words[0] == "sam":
					redeploy(overrides(words))
				default:
					out := awsCommand(t, words[1:]...)
					t.Logf("$ %s\n%s", line, out)
					learn(&command, out, values, mappings)
				}
				said[line] = true
			}
		}
	}
	if len(said) == 0 {
		t.Errorf("the runbook has no commands in %q", section)
	}
}

// expand repeats a command about one mapping for all that were listed; those of the relay are not turned on again.
func expand(command *runbook.Command, sets []map[string]string, mappings map[string][]string) []map[string]string {
	if !slices.Contains(command.Words, "UUID") {
		return sets
	}
	uuids := mappings["BRIDGE:live"]
	if slices.Contains(command.Words, "--no-enabled") {
		uuids = slices.Concat(uuids, mappings["RELAY:live"])
	}
	var all []map[string]string
	for _, uuid := range uuids {
		all = append(all, map[string]string{"UUID": uuid})
	}
	return all
}

// overrides are the parameters that a deployment changes.
func overrides(words []string) map[string]string {
	changes := map[string]string{}
	for _, word := range words {
		if name, value, ok := strings.Cut(word, "="); ok {
			changes[name] = strings.TrimPrefix(value, "$") // a variable that was read
		}
	}
	return changes
}

// learn keeps what later commands need of an answer.
func learn(command *runbook.Command, out string, values map[string]string, mappings map[string][]string) {
	switch {
	case strings.HasPrefix(command.Text, "aws dynamodb describe-table"):
		values["STREAM_ARN"] = strings.TrimSpace(out)
	case strings.HasPrefix(command.Text, "aws lambda list-event-source-mappings"):
		for line := range strings.Lines(out) {
			mappings[command.Words[4]] = append(mappings[command.Words[4]], strings.Fields(line)[0])
		}
	}
}

// fill puts values for the placeholders of a command, of which some are outputs of the stack.
func (d *deployed) fill(t *testing.T, command *runbook.Command, values map[string]string) []string {
	t.Helper()
	filled := maps.Clone(values)
	for n, word := range command.Words {
		for _, name := range capitals.FindAllString(word, -1) {
			output, known := runbook.Placeholders[name]
			if _, given := filled[name]; !known || given || command.Words[max(0, n-1)] == "--query" {
				continue
			}
			if output == "" || d.stack.outputs[output] == "" {
				t.Fatalf("nothing is known of %s in %s", name, command.Text)
			}
			filled[name] = d.stack.outputs[output]
		}
	}
	return command.Fill(filled)
}

// awsCommand runs AWS's command line against local AWS.
func awsCommand(t *testing.T, words ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(root, "localstack", "aws.sh"), words...)
	out, err := command.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("aws %s: %v\n%s", strings.Join(words, " "), err, failed.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// versions are those that the aliases point to, by the placeholder of their function.
func (d *deployed) versions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for placeholder, output := range functionOutputs {
		found[placeholder] = strings.TrimSpace(awsCommand(t, "lambda", "get-alias", "--function-name", d.stack.outputs[output], "--name", "live",
			"--query", "FunctionVersion", "--output", "text"))
	}
	return found
}

var functionOutputs = map[string]string{"BRIDGE": "BridgeFunction", "RELAY": "RelayFunction", "TICK": "TickFunction"}

// rollBack follows the runbook back to versions that served before, and then, after a look, to the parameters that made them.
func (d *deployed) rollBack(t *testing.T, to, parameters map[string]string, look func()) {
	t.Helper()
	var sets []map[string]string
	for _, placeholder := range slices.Sorted(maps.Keys(to)) { // the commands stand there for one function, and are for each
		sets = append(sets, map[string]string{
			"STACK": d.name, "BRIDGE": d.stack.outputs[functionOutputs[placeholder]], "VERSION": to[placeholder],
		})
	}
	d.follow(t, "Roll back", func(map[string]string) {
		if got := d.versions(t); !maps.Equal(got, to) {
			t.Errorf("the aliases are at %v, not back at %v", got, to)
		}
		look()
		d.update(t, parameters)
	}, sets...)
}

// restore makes what a restoration to a point in time makes: the items and the indexes, without stream and time to live.
func (d *deployed) restore(t *testing.T) (name string) {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client, source := dynamodb.NewFromConfig(cfg), d.stack.outputs["TableName"]
	name = source + "-restored"
	input := infra.TableInput(name)
	input.StreamSpecification = nil
	if _, err := client.CreateTable(t.Context(), input); err != nil {
		t.Fatal(err)
	}
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &source, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: item}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return name
}

// wantAdopted shows that the deployed functions work on a table that the stack did not make: its runs are there, wakeups reach the bridge,
// and pending rows go through its stream and the relay.
func (d *deployed) wantAdopted(t *testing.T, table string, earlier *runlane.Run, deliveries []webhooks.Delivery) {
	t.Helper()
	if got := d.stack.outputs["TableName"]; got != table {
		t.Fatalf("the stack works on %s, not %s", got, table)
	}
	d.open(t)
	if run, err := d.rt.Runs().Get(t.Context(), earlier.ID); err != nil || run.Status != runlane.StatusSucceeded {
		t.Errorf("a run of before: %+v, %v", run, err)
	}
	d.wantDelivered(t, deliveries[:1], nil)
	d.wantDelivered(t, deliveries[1:2], &runlane.TriggerOptions{Deferred: true})
	if err := d.stack.tick(t.Context()); err != nil {
		t.Error(err)
	}
	d.wantNoViolations(t)
}

// wantUnchanged deploys the stack as it is.
func (d *deployed) wantUnchanged(t *testing.T) {
	t.Helper()
	before := d.versions(t)
	if said := d.deploy(t); !strings.Contains(said, "No changes to deploy. Stack "+d.name+" is up to date") {
		t.Error("an unchanged deployment does not say so")
	}
	if after := d.versions(t); !maps.Equal(before, after) {
		t.Errorf("it went from %v to %v", before, after)
	}
}

func address(e *endpoint) string { return fmt.Sprintf("%s=%s", webhooks.DefaultEndpoint, e.url) }
