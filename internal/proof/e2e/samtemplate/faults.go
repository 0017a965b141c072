package samtemplate

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Faults lists what is wrong with an evaluated template and is said by none of the tools of `make validate`: AWS would
// refuse it with the deployment, or accept it and do something else.
func Faults(template *Template) []string {
	c := check{template: template}
	for _, name := range slices.Sorted(maps.Keys(template.Resources)) {
		resource := template.Resources[name]
		switch resource.Type {
		case "AWS::Serverless::Function":
			events, _ := resource.Properties["Events"].(map[string]any)
			for _, event := range slices.Sorted(maps.Keys(events)) {
				fields, _ := events[event].(map[string]any)
				properties, _ := fields["Properties"].(map[string]any)
				c.event(name+"."+event, fmt.Sprint(fields["Type"]), resource, properties)
			}
			c.receiver(name, resource)
		case "AWS::Lambda::EventSourceMapping":
			owner, _, _ := strings.Cut(strings.Trim(fmt.Sprint(resource.Properties["FunctionName"]), "${}"), ".")
			c.mapping(
				name,
				fmt.Sprint(resource.Properties["EventSourceArn"]),
				template.Resources[owner],
				resource.Properties,
			)
		case "AWS::Scheduler::Schedule":
			c.schedule(name, resource.Properties)
		}
	}
	return c.faults
}

type check struct {
	template *Template
	faults   []string
}

func (c *check) fault(where, format string, values ...any) {
	c.faults = append(c.faults, where+": "+fmt.Sprintf(format, values...))
}

func (c *check) event(where, kind string, function Resource, properties map[string]any) {
	switch kind {
	case "SQS":
		c.mapping(where, fmt.Sprint(properties["Queue"]), function, properties)
	case "DynamoDB":
		c.stream(where, properties)
	case "Schedule", "ScheduleV2":
		c.schedule(where, properties)
	default:
		c.fault(where, "events of type %s are not judged here", kind)
	}
}

const (
	visibilityFactor = 6
	maxWithoutWindow = 10
	minRecordAge     = 60
)

// mapping judges one from an SQS queue of the template.
func (c *check) mapping(where, source string, function Resource, properties map[string]any) {
	name, _, _ := strings.Cut(strings.Trim(source, "${}"), ".")
	queue, ok := c.template.Resources[name]
	if !ok || queue.Type != "AWS::SQS::Queue" {
		c.fault(where, "%s is no queue of this template", source)
		return
	}
	visibility, timeout := integer(
		queue.Properties["VisibilityTimeout"],
		30,
	), integer(function.Properties["Timeout"], 3)
	if visibility < visibilityFactor*timeout {
		c.fault(
			where,
			"visibility timeout %d s of %s is less than %d function timeouts of %d s",
			visibility,
			name,
			visibilityFactor,
			timeout,
		)
	}
	window := integer(properties["MaximumBatchingWindowInSeconds"], 0)
	fifo := fmt.Sprint(queue.Properties["FifoQueue"]) == "true"
	if size := integer(properties["BatchSize"], maxWithoutWindow); size > maxWithoutWindow && (window == 0 || fifo) {
		c.fault(where, "BatchSize %d needs a batching window, and a standard queue", size)
	}
	if fifo && properties["MaximumBatchingWindowInSeconds"] != nil {
		c.fault(where, "a FIFO queue has no batching window")
	}
	if properties["DestinationConfig"] != nil {
		c.fault(where, "a queue's mapping has no failure destination; the queue has a dead-letter queue")
	}
	if properties["FilterCriteria"] != nil {
		c.fault(where, "a filter deletes the wakeups that do not match")
	}
	if queue.Properties["RedrivePolicy"] == nil {
		c.fault(where, "%s has no dead-letter queue", name)
	}
	c.partial(where, properties)
}

func (c *check) partial(where string, properties map[string]any) {
	list, _ := properties["FunctionResponseTypes"].([]any)
	if !slices.Contains(list, any("ReportBatchItemFailures")) {
		c.fault(where, "one record that fails would fail its whole batch")
	}
}

// stream judges one from a table's stream, whose defaults repeat a record for a day and then drop it.
func (c *check) stream(where string, properties map[string]any) {
	if age := integer(properties["MaximumRecordAgeInSeconds"], -1); age < minRecordAge {
		c.fault(where, "MaximumRecordAgeInSeconds is %d, want %d at least", age, minRecordAge)
	}
	if retries := integer(properties["MaximumRetryAttempts"], -1); retries < 0 {
		c.fault(where, "MaximumRetryAttempts is %d, which is without end", retries)
	}
	if properties["DestinationConfig"] == nil {
		c.fault(where, "what is given up goes nowhere")
	}
	c.partial(where, properties)
	criteria, _ := properties["FilterCriteria"].(map[string]any)
	filters, _ := criteria["Filters"].([]any)
	if len(filters) == 0 {
		c.fault(where, "every record of the table invokes the function")
	}
	for _, filter := range filters {
		text := fmt.Sprint(filter.(map[string]any)["Pattern"])
		var pattern map[string]any
		if err := json.Unmarshal([]byte(text), &pattern); err != nil {
			c.fault(where, "filter %q is no JSON object: %v", text, err)
			continue
		}
		c.pattern(where, "", pattern)
	}
}

// operators are those of filter patterns, of which the stream's numbers (text in DynamoDB's JSON) leave out numeric.
var operators = []string{"prefix", "suffix", "anything-but", "exists", "equals-ignore-case", "wildcard"}

// pattern: every leaf is a list of values and of operators.
func (c *check) pattern(where, path string, value any) {
	fields, ok := value.(map[string]any)
	if !ok {
		leaves, ok := value.([]any)
		if !ok || len(leaves) == 0 {
			c.fault(where, "filter at %s is no list of values", path)
		}
		for _, leaf := range leaves {
			operator, _ := leaf.(map[string]any)
			for name := range operator {
				if !slices.Contains(operators, name) {
					c.fault(where, "filter at %s has the operator %q", path, name)
				}
			}
		}
		return
	}
	if len(fields) == 0 {
		c.fault(where, "filter at %q is empty", path)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if path == "" && !slices.Contains([]string{"eventName", "dynamodb", "userIdentity"}, name) {
			c.fault(where, "filter has %q, which is no part of a record", name)
		}
		c.pattern(where, path+"/"+name, fields[name])
	}
}

var rate = regexp.MustCompile(`^rate\((1 (minute|hour|day)|([2-9]|[1-9][0-9]+) (minutes|hours|days))\)$`)

func (c *check) schedule(where string, properties map[string]any) {
	if expression := fmt.Sprint(properties["ScheduleExpression"]); !rate.MatchString(expression) {
		c.fault(where, "%s is no rate that the scheduler knows", expression)
	}
	window, _ := properties["FlexibleTimeWindow"].(map[string]any)
	if window["Mode"] != "OFF" {
		c.fault(where, "the window is %v, want the text OFF", window["Mode"])
	}
	if properties["Name"] == nil {
		c.fault(where, "without a name the schedules of two stacks are called alike")
	}
}

// integer reads a number that the template writes as one, or a parameter's text.
func integer(value any, absent int) int {
	if value == nil {
		return absent
	}
	n, err := strconv.Atoi(fmt.Sprint(value))
	if err != nil {
		return -1
	}
	return n
}
