package samfile

import (
	"regexp"
	"slices"
	"strings"
)

// moved names the statement with the rights that a role keeps after a queue's event went to another function: a
// deployment changes roles before it makes the other function's mapping, and takes the mapping of this one away last.
const moved = "MovedQueues"

// receives lets one function take a queue's wakeups: it counts them as its own, and its role may take them. Other roles
// lose the right.
func (t *text) receives(name, owner string) error {
	if !slices.Contains(t.bridges(), owner) {
		return missing("function with RUNLANE_FUNCTION: bridge that has the event %sWakeups", ID(name))
	}
	for _, id := range t.bridges() {
		role, queue := id+"Role", ID(name)+"Queue"
		if err := t.count(id, name, id == owner); err != nil {
			return err
		}
		if err := t.allow(role, queue, id == owner); err != nil {
			return err
		}
		if s, ok := t.entry("Resources", id); ok {
			if events, ok := t.within(s, "Events"); ok && events.to == events.from+1 {
				t.lines = slices.Delete(t.lines, events.from, events.to)
			}
		}
	}
	if s, ok := t.movedOf(owner + "Role"); ok { // it came back
		t.unlist(s, ID(name)+"Queue")
	}
	return nil
}

// bridges are the functions that take wakeups.
func (t *text) bridges() (ids []string) {
	resources, _ := t.section("Resources")
	for i := resources.from; i < resources.to; i++ {
		id, _, _ := strings.Cut(strings.TrimSpace(t.lines[i]), ":")
		if indent(t.lines[i]) != 2 || isComment(t.lines[i]) {
			continue
		}
		if s, _ := t.entry("Resources", id); slices.ContainsFunc(t.lines[s.from:s.to], bridge.MatchString) {
			ids = append(ids, id)
		}
	}
	return ids
}

var bridge = regexp.MustCompile(`^ *RUNLANE_FUNCTION: *["']?bridge["']?(?: +#.*)?\s*$`)

// owner is the function whose event a line is part of.
func (t *text) owner(event span) string {
	for _, id := range t.bridges() {
		if s, _ := t.entry("Resources", id); s.from < event.from && event.from < s.to {
			return id
		}
	}
	return ""
}

// counted is a function's list of bindings, and what stands before and behind it: a text, or the first part of a !Sub
// with a list, which the shipped template has.
var counted = regexp.MustCompile(
	`^( *RUNLANE_BINDINGS: *(?:!Sub \["|"))((?:[\w.,-]|\$\{\w+\})*)("(?:, \{.*\}\])?(?: +#.*)?\s*)$`)

// countedPlain is one without quotation marks.
var countedPlain = regexp.MustCompile(`^( *RUNLANE_BINDINGS: *)([\w.-][\w.,-]*)((?: +#.*)?\s*)$`)

// count makes a name one of a function's own bindings, or takes it away. A template without the list gets none.
func (t *text) count(id, name string, own bool) error {
	s, _ := t.entry("Resources", id)
	for i := s.from; i < s.to; i++ {
		if isComment(t.lines[i]) || !strings.Contains(t.lines[i], "RUNLANE_BINDINGS") {
			continue
		}
		parts := counted.FindStringSubmatch(t.lines[i])
		if parts == nil {
			parts = countedPlain.FindStringSubmatch(t.lines[i])
		}
		if parts == nil {
			return missing("RUNLANE_BINDINGS of %s as \"a,b\" or as !Sub [\"a,b\", {…}], in one line", id)
		}
		names := strings.FieldsFunc(parts[2], func(r rune) bool { return r == ',' })
		names = slices.DeleteFunc(names, func(n string) bool { return n == name && !own })
		if own && !slices.Contains(names, name) {
			names = append(names, name)
		}
		list := strings.Join(names, ",")
		if list == "" && !strings.Contains(parts[1], `"`) {
			list = `""`
		}
		t.lines[i] = parts[1] + list + parts[3]
	}
	return nil
}

// countNone empties the list of a function that is a copy.
func (t *text) countNone(s span) {
	for i := s.from; i < s.to; i++ {
		if strings.HasPrefix(strings.TrimSpace(t.lines[i]), "RUNLANE_BINDINGS:") {
			t.lines[i] = strings.Repeat(" ", indent(t.lines[i])) + "RUNLANE_BINDINGS: \"\"\n"
		}
	}
}

// statement is the first one of a role that has all of some words and none of others.
func (t *text) statement(role string, has []string, lacks ...string) (span, bool) {
	all := t.statements(role, has, lacks...)
	if len(all) == 0 {
		return span{}, false
	}
	return all[0], true
}

func (t *text) statements(role string, has []string, lacks ...string) (all []span) {
	s, _ := t.entry("Resources", role)
	for i := s.from; i < s.to; i++ {
		if !strings.HasPrefix(strings.TrimSpace(t.lines[i]), "- Effect:") {
			continue
		}
		to := i + 1
		for to < s.to && indent(t.lines[to]) > indent(t.lines[i]) {
			to++
		}
		found := span{i, to}
		mentions := func(word string) bool { return t.mentions(found, word) }
		misses := func(word string) bool { return !mentions(word) }
		if !slices.ContainsFunc(lacks, mentions) && !slices.ContainsFunc(has, misses) {
			all = append(all, found)
		}
	}
	return all
}

// receiving is the statement of a role about the queues of its events, which ends with their list. Templates of earlier
// versions have one for all that may be done with any queue: all that is left as it is.
func (t *text) receiving(role string) (span, bool) {
	for _, s := range t.statements(role, []string{"ReceiveMessage"}, "SendMessage", moved) {
		if t.endsWithList(s) {
			return s, true
		}
	}
	return span{}, false
}

// endsWithList reports a statement that has nothing behind its resources, which are a list of "- !GetAtt Queue.Arn".
func (t *text) endsWithList(s span) bool {
	for i := s.to - 1; i >= s.from; i-- {
		switch line := strings.TrimSpace(t.lines[i]); {
		case line == "Resource:":
			return i < s.to-1
		case !isComment(line) && !queueItem.MatchString(line):
			return false
		}
	}
	return false
}

var queueItem = regexp.MustCompile(`^- !GetAtt \w+\.Arn(?: +#.*)?$`)

// otherwise reports a role that may receive from a queue by a statement which this package cannot change.
func (t *text) otherwise(role, queue string) bool {
	return slices.ContainsFunc(t.statements(role, []string{"ReceiveMessage", queue}, "SendMessage", moved),
		func(s span) bool { return !t.endsWithList(s) })
}

// movedOf is the statement of a role about queues that went to other functions.
func (t *text) movedOf(role string) (span, bool) {
	return t.statement(role, []string{"ReceiveMessage", moved})
}

// allow lets a role take a queue's wakeups, or no longer.
func (t *text) allow(role, queue string, allowed bool) error {
	s, ok := t.receiving(role)
	switch there := ok && t.lists(s, queue); {
	case t.otherwise(role, queue):
		return missingReceiving(role)
	case there == allowed:
	case !ok:
		if from, can := t.receiving("BridgeRole"); can {
			return t.allowFirst(role, queue, from)
		}
		first, _ := t.entry("Resources", "BridgeRole")
		_, all := t.statement("BridgeRole", []string{"ReceiveMessage", "SendMessage"})
		if !all && t.mentions(first, "ReceiveMessage") {
			return missingReceiving("BridgeRole")
		}
	case allowed:
		t.insert(s.to, t.arnItem(s, queue))
	default:
		t.unlist(s, queue)
	}
	return nil
}

// keepRight lets the role of the function that has a queue's event keep its right when the event goes.
func (t *text) keepRight(queue, function string) {
	role := function + "Role"
	receiving, ok := t.receiving(role)
	if !ok || !t.lists(receiving, queue) {
		return
	}
	if s, ok := t.movedOf(role); ok {
		if !t.lists(s, queue) {
			t.insert(s.to, t.arnItem(s, queue))
		}
		return
	}
	lines := t.emptied(receiving)
	sid := strings.Repeat(" ", indent(lines[0])+2) + "Sid: " + moved +
		" # until the deployment is over; then call functions add again\n"
	lines = slices.Insert(lines, 1, sid)
	t.insert(receiving.to, append(lines, t.arnItem(receiving, queue))...)
}

// forgetMoved takes away what roles kept of a queue.
func (t *text) forgetMoved(queue string) {
	for _, id := range t.bridges() {
		if s, ok := t.movedOf(id + "Role"); ok {
			t.unlist(s, queue)
		}
	}
}

func isItem(queue string) func(line string) bool {
	return func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "- !GetAtt "+queue+".Arn") }
}

func (t *text) lists(s span, queue string) bool {
	return slices.ContainsFunc(t.lines[s.from:s.to], isItem(queue))
}

// unlist takes a queue out of a statement, and the statement away with its last one.
func (t *text) unlist(s span, queue string) {
	rest := slices.DeleteFunc(slices.Clone(t.lines[s.from:s.to]), isItem(queue))
	if !slices.ContainsFunc(rest, func(line string) bool { return strings.Contains(line, "- !GetAtt ") }) {
		rest = nil
	}
	t.lines = slices.Replace(t.lines, s.from, s.to, rest...)
}

// emptied are the lines of a statement without its queues.
func (t *text) emptied(s span) []string {
	return slices.DeleteFunc(slices.Clone(t.lines[s.from:s.to]), func(line string) bool {
		return strings.Contains(line, "- !GetAtt ")
	})
}

// arnItem is a line of the list that a statement ends with.
func (t *text) arnItem(s span, queue string) string {
	last := s.to - 1
	for isComment(t.lines[last]) {
		last--
	}
	return strings.Repeat(" ", indent(t.lines[last])) + "- !GetAtt " + queue + ".Arn\n"
}

func missingReceiving(role string) error {
	return missing("statement about sqs:ReceiveMessage that ends with \"- !GetAtt WorkQueue.Arn\" in %s", role)
}

// allowFirst gives a role the statement of the bridge's own, about one queue.
func (t *text) allowFirst(role, queue string, from span) error {
	lines := append(t.emptied(from), t.arnItem(from, queue))
	before, ok := t.statement(role, []string{"SendMessage"})
	if !ok {
		return missing("statement about sqs:SendMessage in %s", role)
	}
	at := before.to
	for isComment(t.lines[at]) { // the comment of the statement that the copy was left without
		at++
	}
	t.insert(at, lines...)
	return nil
}
