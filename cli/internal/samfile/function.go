package samfile

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Function is one more bridge: the same program, with its own queues and limits.
type Function struct {
	Name   string
	Queues []string // names in the application, each with a separate SQS queue
	New    []string // those of Queues that no deployed function receives from

	Timeout     int // seconds of an invocation
	Memory      int // megabytes
	BatchSize   int // limit of wakeups in one invocation
	Concurrency int // limit of invocations at once, for each queue
}

// Parts of the template that belong to a bridge. A template may lack the alarms.
var (
	bridgeParameters = []string{"Timeout", "Memory", "BatchSize", "Concurrency"}
	bridgeEntries    = []string{"Bridge", "BridgeLogs", "BridgeRole"}
	bridgeAlarms     = []string{
		"BridgeErrorsAlarm", "BridgeCanaryAlarm", "BridgeThrottlesAlarm", "InvocationsAlarm", "ConcurrencyAlarm",
	}
)

// AddFunction returns the template with one more bridge, which receives the wakeups of these queues. The role of a
// queue's former function keeps its right until the function is added again, because a deployment removes its mapping
// last. A queue without its own SQS queue is a MissingError, since one SQS queue can only have one function.
func AddFunction(template string, f Function) (string, error) {
	t := newText(template)
	id := ID(f.Name)
	var names renaming
	for _, name := range slices.Concat(bridgeEntries, bridgeAlarms) {
		names = append(names, renamed{name, id + name}) // Bridge becomes ReportsBridge
	}
	for _, name := range bridgeParameters {
		names = append(names, renamed{"Bridge" + name, id + name}) // BridgeTimeout becomes ReportsTimeout
	}
	if s, there := t.entry("Resources", id+"Bridge"); !there {
		var ids []string
		for _, pair := range names {
			ids = append(ids, pair.replacement)
		}
		if err := t.untaken(ids...); err != nil {
			return "", err
		}
	} else if !strings.Contains(strings.Join(t.lines[s.from:s.to], ""), "-canary-"+f.Name+`"`) {
		return "", &TakenError{"function with the id " + id + "Bridge"}
	}
	for _, queue := range f.Queues {
		if !HasQueue(template, queue) {
			return "", missing("separate SQS queue for %s", queue)
		}
	}
	if err := t.addBridgeParameters(f, names); err != nil {
		return "", err
	}
	if err := t.addBridgeEntries(f, names); err != nil {
		return "", err
	}
	for _, queue := range f.Queues {
		event, _ := t.anyEvent(ID(queue) + "Wakeups")
		if former := t.owner(event); former == id+"Bridge" {
			t.forgetMoved(ID(queue) + "Queue")
		} else if !slices.Contains(f.New, queue) {
			t.keepRight(ID(queue)+"Queue", former)
		}
		if err := t.moveQueue(ID(queue), f, names); err != nil {
			return "", err
		}
		if err := t.receives(queue, id+"Bridge"); err != nil {
			return "", err
		}
	}
	t.addToSums(id)
	t.addToBoard(renamed{`"${Bridge}`, `"${` + id + `Bridge}`})
	t.addToOutputs(id)
	return t.String(), t.differentNames()
}

func (t *text) addBridgeParameters(f Function, names renaming) error {
	values := map[string]int{
		"Timeout":     f.Timeout,
		"Memory":      f.Memory,
		"BatchSize":   f.BatchSize,
		"Concurrency": f.Concurrency,
	}
	for _, parameter := range bridgeParameters {
		added, err := t.addEntry("Parameters", "Bridge"+parameter, names)
		if err != nil {
			return err
		}
		s, _ := t.entry("Parameters", names.apply("Bridge"+parameter))
		if added {
			described, _ := t.within(s, "Description")
			t.lines[described.from] = strings.Replace(t.lines[described.from], "the bridge", "function "+f.Name, 1)
		}
		if value := values[parameter]; value > 0 {
			d, ok := t.within(s, "Default")
			if !ok {
				return missing("Default of %s", names.apply("Bridge"+parameter))
			}
			was := regexp.MustCompile(`\d+`)
			t.lines[d.from] = was.ReplaceAllString(t.lines[d.from], strconv.Itoa(value))
		}
	}
	return nil
}

func (t *text) addBridgeEntries(f Function, names renaming) error {
	for _, id := range slices.Concat(bridgeEntries, bridgeAlarms) {
		var absent *MissingError
		added, err := t.addEntry("Resources", id, names)
		if errors.As(err, &absent) && slices.Contains(bridgeAlarms, id) {
			continue
		}
		if err != nil {
			return err
		}
		if !added {
			continue
		}
		s, _ := t.entry("Resources", names.apply(id))
		for i := s.from; i < s.to; i++ {
			t.lines[i] = strings.ReplaceAll(t.lines[i], "-canary-bridge", "-canary-"+f.Name)
			if indent(t.lines[i]) == 6 { // descriptions
				t.lines[i] = strings.ReplaceAll(t.lines[i], "the bridge", "function "+f.Name)
				t.lines[i] = strings.ReplaceAll(t.lines[i], "The bridge", "Function "+f.Name)
			}
		}
		for _, of := range []func(string) (span, bool){t.receiving, t.movedOf} {
			if statement, ok := of(names.apply(id)); ok {
				t.lines = slices.Delete(t.lines, statement.from, statement.to)
			}
		}
		if id == "Bridge" {
			t.countNone(s)
			t.emptyEvents(s)
			queues := strings.Join(f.Queues, ", ")
			t.insert(s.from, fmt.Sprintf("  # One more bridge: the same program, for %s.\n", queues))
		}
	}
	return nil
}

// emptyEvents removes the events that a copied function still has.
func (t *text) emptyEvents(s span) {
	if events, ok := t.within(s, "Events"); ok {
		t.lines = slices.Delete(t.lines, events.from+1, events.to)
	}
}

// moveQueue moves a queue's event to the new function, with its limits.
func (t *text) moveQueue(queue string, f Function, names renaming) error {
	id := ID(f.Name)
	event, ok := t.anyEvent(queue + "Wakeups")
	if !ok {
		return missing("event %sWakeups", queue)
	}
	bridge, ok := t.entry("Resources", id+"Bridge")
	if !ok {
		return missing("Resources %sBridge", id)
	}
	lines := t.copyOf(event, names)
	for i := range lines { // even if another added function had the queue
		lines[i] = limits.ReplaceAllString(lines[i], "!Ref "+id+"$1")
	}
	if event.from < bridge.from || event.from >= bridge.to {
		t.lines = slices.Delete(t.lines, event.from, event.to)
		bridge, _ = t.entry("Resources", id+"Bridge")
		events, ok := t.within(bridge, "Events")
		if !ok { // its last queue moved away
			t.insert(bridge.to, "      Events:\n")
			events = span{bridge.to, bridge.to + 1}
		}
		t.insert(events.to, lines...)
	}
	for _, name := range []string{queue + "Queue", queue + "OldestMessageAlarm"} {
		s, ok := t.entry("Resources", name)
		for i := s.from; ok && i < s.to; i++ {
			t.lines[i] = timeouts.ReplaceAllString(t.lines[i], "!Ref "+id+"Timeout,")
			t.lines[i] = taker.ReplaceAllString(t.lines[i], "look at function "+f.Name+"'s ")
		}
	}
	if s, _ := t.entry("Resources", queue+"Queue"); !t.mentions(s, id+"Timeout") { // AWS refuses a mapping without it
		return missing("VisibilityTimeout of %sQueue by !FindInMap [Visibility, !Ref …Timeout, Seconds]", queue)
	}
	return nil
}

// timeouts matches the parameter from which a queue's visibility timeout is computed.
var timeouts = regexp.MustCompile(`!Ref \w+Timeout,`)

// taker matches the function in an alarm's description.
var taker = regexp.MustCompile(`look at (?:the bridge|function [A-Za-z0-9_-]+)'s `)

var limits = regexp.MustCompile(`!Ref \w+?(BatchSize|Concurrency)\b`)

// addToSums adds the function to alarms that sum over all functions. Names in sums begin with a small letter.
func (t *text) addToSums(id string) {
	name := strings.ToLower(id[:1]) + id[1:]
	const bridge = "FILL(bridge, 0)"
	term := strings.Replace(bridge, "bridge", name, 1)
	for i := 0; i < len(t.lines); i++ {
		if strings.Contains(t.lines[i], "Expression:") && !strings.Contains(t.lines[i], term) {
			t.lines[i] = strings.Replace(t.lines[i], bridge, bridge+" + "+term, 1)
		}
		if strings.TrimSpace(t.lines[i]) != "- Id: bridge" {
			continue
		}
		from, to, depth := i, i+1, indent(t.lines[i])
		for to < len(t.lines) && indent(t.lines[to]) > depth {
			to++
		}
		made := strings.Replace(t.lines[i], "bridge", name, 1)
		if to < len(t.lines) && t.lines[to] == made {
			continue
		}
		lines := append([]string{made}, slices.Clone(t.lines[from+1:to])...)
		for j := range lines {
			lines[j] = strings.ReplaceAll(lines[j], "!Ref Bridge}", "!Ref "+id+"Bridge}")
		}
		t.insert(to, lines...)
		i = to
	}
}

func (t *text) addToOutputs(id string) {
	s, ok := t.entry("Outputs", "BridgeFunction")
	if _, there := t.entry("Outputs", id+"BridgeFunction"); !ok || there {
		return
	}
	t.insert(s.to, t.copyOf(s, renaming{{"BridgeFunction", id + "BridgeFunction"}, {"Bridge", id + "Bridge"}})...)
}

// Moved reports whether a function keeps its right to a queue that moved to another one.
func Moved(template string) bool { return strings.Contains(template, "Sid: "+moved) }

// Forgets reports whether a function loses such a right between two versions of a template.
func Forgets(before, after string) bool {
	was, is := newText(before), newText(after)
	for _, id := range was.bridges() {
		role := id + "Role"
		kept, _ := was.movedOf(role)
		still, _ := is.movedOf(role)
		again, _ := is.receiving(role)
		for _, line := range was.lines[kept.from:kept.to] {
			queue, ok := strings.CutPrefix(strings.TrimSpace(line), "- !GetAtt ")
			queue, _, _ = strings.Cut(queue, ".")
			if ok && !is.lists(still, queue) && !is.lists(again, queue) {
				return true
			}
		}
	}
	return false
}
