package runbook_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/awstest"
)

// TestCommands_AreExecuted has an installation for each section, with something of everything that commands are about: a run that
// waits, ones that failed, ones whose wakeups were given up, and a copy of the table.
func TestCommands_AreExecuted(t *testing.T) {
	t.Parallel()
	awstest.Config(t) // left out by -short
	sections := map[string][]*command{}
	count := 0
	for _, block := range document(t) {
		if block.Account {
			continue
		}
		for _, c := range block.Steps {
			sections[block.Section] = append(sections[block.Section], &command{Words: c.Fill, text: c.Text, place: fmt.Sprintf("%s:%d", block.Document, c.Line), exit: c.Exit})
			count++
		}
	}
	if count < 25 || len(sections) < 9 {
		t.Errorf("only %d commands in %d sections", count, len(sections))
	}
	for section, commands := range sections {
		t.Run(section, func(t *testing.T) {
			t.Parallel()
			i := install(t)
			values := i.troubled()
			for _, c := range commands {
				out, code := runlaneCommand(t, i.variables(), c.Words(values)[1:]...)
				t.Logf("$ %s\n%s", c.text, out)
				if code != c.exit {
					t.Errorf("%s: %s exits with %d, not %d\n%s", c.place, c.text, code, c.exit, out)
				}
			}
		})
	}
}

type command struct {
	Words       func(map[string]string) []string
	place, text string
	exit        int
}

// troubled makes the runs that commands name, and says what stands for which placeholder.
func (i *installation) troubled() map[string]string {
	i.t.Helper()
	var failed []runlane.RunID
	for range 2 {
		failed = append(failed, i.trigger(fails.With("nothing"), nil))
	}
	work(i.t, i.Runtime, runlane.StatusFailed, failed...)
	i.refuse.Store(true)
	dead := i.trigger(greet.With("one"), nil)
	i.trigger(fails.With("another"), nil)
	i.refuse.Store(false)
	i.wantWait(core.WaitOperator, dead)
	run := i.trigger(greet.With("someone"), nil)
	i.trigger(fails.With("later"), &runlane.TriggerOptions{Delay: time.Hour})
	return map[string]string{
		"RUN": string(run), "DEAD": string(dead), "TASK": string(failsTask), "QUEUE": string(workQueue), "RESTORED": i.restored(),
		"PAYLOAD": `"rotated"`,
	}
}

// restored copies the table as it is now, as a restoration would.
func (i *installation) restored() string {
	i.t.Helper()
	client := awstest.LocalStackDynamoDB(i.t)
	target := awstest.Table(i.t, client)
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &i.table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(i.t.Context())
		if err != nil {
			i.t.Fatal(err)
		}
		for _, item := range page.Items {
			if _, err := client.PutItem(i.t.Context(), &dynamodb.PutItemInput{TableName: &target, Item: item}); err != nil {
				i.t.Fatal(err)
			}
		}
	}
	return target
}
