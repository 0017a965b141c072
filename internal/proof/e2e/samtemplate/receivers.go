package samtemplate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// movedQueues is the Sid of the statement that lets a role receive from queues whose events went to another function:
// a deployment changes the role first and takes the mapping away last.
const movedQueues = "MovedQueues"

// receiver judges a function that takes wakeups: its role may receive from the queues of its events and, but for what
// movedQueues says, from no other, and RUNLANE_BINDINGS has the names of those that are on. Functions without a role in
// the template, or without the variable, are not judged.
func (c *check) receiver(name string, function Resource) {
	taken, on := map[string]bool{}, map[string]bool{}
	events, _ := function.Properties["Events"].(map[string]any)
	for _, event := range events {
		fields, _ := event.(map[string]any)
		properties, _ := fields["Properties"].(map[string]any)
		if fields["Type"] == "SQS" {
			queue, _, _ := strings.Cut(strings.Trim(fmt.Sprint(properties["Queue"]), "${}"), ".")
			taken[queue] = true
			on[queue] = fmt.Sprint(properties["Enabled"]) != "false"
		}
	}
	maps.DeleteFunc(on, func(_ string, enabled bool) bool { return !enabled })
	role, _, _ := strings.Cut(strings.Trim(fmt.Sprint(function.Properties["Role"]), "${}"), ".")
	_, here := c.template.Resources[role]
	may, moved := receives(c.template.Resources[role])
	if len(may) > 0 || len(taken) > 0 && here {
		c.same(name, "its role may receive from %v, and its events are of %v", may, taken)
	}
	for queue := range moved {
		if taken[queue] {
			c.fault(name, "its role has %s as a queue that moved, and has an event of it", queue)
		}
	}
	environment, _ := function.Properties["Environment"].(map[string]any)
	variables, _ := environment["Variables"].(map[string]any)
	list, ok := variables["RUNLANE_BINDINGS"]
	if !ok {
		return
	}
	bound := map[string]string{}
	for pair := range strings.SplitSeq(fmt.Sprint(variables["RUNLANE_QUEUES"]), ",") {
		queue, url, _ := strings.Cut(pair, "=")
		bound[queue] = strings.Trim(url, "${}")
	}
	own := map[string]bool{}
	for queue := range strings.SplitSeq(fmt.Sprint(list), ",") {
		if queue != "" {
			own[bound[queue]] = true
		}
	}
	c.same(name, "RUNLANE_BINDINGS has %v, and its events are of %v", own, on)
}

func (c *check) same(where, format string, a, b map[string]bool) {
	if !maps.Equal(a, b) {
		c.fault(where, format, slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b)))
	}
}

// receives are the queues that a role may receive from, and those that it still may after they moved.
func receives(role Resource) (queues, moved map[string]bool) {
	queues, moved = map[string]bool{}, map[string]bool{}
	policies, _ := role.Properties["Policies"].([]any)
	for _, policy := range policies {
		fields, _ := policy.(map[string]any)
		document, _ := fields["PolicyDocument"].(map[string]any)
		statements, _ := document["Statement"].([]any)
		for _, statement := range statements {
			fields, _ := statement.(map[string]any)
			if actions, _ := fields["Action"].([]any); !slices.Contains(actions, any("sqs:ReceiveMessage")) {
				continue
			}
			resources, _ := fields["Resource"].([]any)
			list := queues
			if fields["Sid"] == movedQueues {
				list = moved
			}
			for _, resource := range resources {
				queue, _, _ := strings.Cut(strings.Trim(fmt.Sprint(resource), "${}"), ".")
				list[queue] = true
			}
		}
	}
	return queues, moved
}
