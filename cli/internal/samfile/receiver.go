package samfile

import (
	"regexp"
	"slices"
	"strings"
)

// moved names the statement with rights that a role keeps after a queue's event moved to another function: a deployment
// changes roles before it creates the new mapping, and removes the old one last.
const moved = "MovedQueues"

// receives makes one function receive a queue's wakeups, by its list of bindings and its role. Other functions lose
// both.
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
	if s, ok := t.movedOf(owner + "Role"); ok { // the queue came back
		t.unlist(s, ID(name)+"Queue")
	}
	return nil
}

// bridges returns the functions that receive wakeups.
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

// owner returns the function that contains the line of an event.
func (t *text) owner(event span) string {
	for _, id := range t.bridges() {
		if s, _ := t.entry("Resources", id); s.from < event.from && event.from < s.to {
			return id
		}
	}
	return ""
}

// counted matches a function's list of bindings: a string, or the first part of !Sub with a list, as in the shipped
// template.
var counted = regexp.MustCompile(
	`^( *RUNLANE_BINDINGS: *(?:!Sub \["|"))((?:[\w.,-]|\$\{\w+\})*)("(?:, \{.*\}\])?(?: +#.*)?\s*)$`)

var countedPlain = regexp.MustCompile(`^( *RUNLANE_BINDINGS: *)([\w.-][\w.,-]*)((?: +#.*)?\s*)$`)

// count adds a name to a function's list of bindings, or removes it. A template without the list gets none.
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

// countNone empties the list of a copied function.
func (t *text) countNone(s span) {
	for i := s.from; i < s.to; i++ {
		if strings.HasPrefix(strings.TrimSpace(t.lines[i]), "RUNLANE_BINDINGS:") {
			t.lines[i] = strings.Repeat(" ", indent(t.lines[i])) + "RUNLANE_BINDINGS: \"\"\n"
		}
	}
}

// statement returns a role's first statement that contains all of has and none of lacks.
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

// receiving returns the role's statement for the queues of its events, which ends with their list. Older templates have
// one statement for all rights to any queue, which is not changed.
func (t *text) receiving(role string) (span, bool) {
	for _, s := range t.statements(role, []string{"ReceiveMessage"}, "SendMessage", moved) {
		if t.endsWithList(s) {
			return s, true
		}
	}
	return span{}, false
}

// endsWithList reports a statement that ends with its resources as a list of "- !GetAtt Queue.Arn".
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

// otherwise reports a role that may receive from a queue by a statement that this package cannot change.
func (t *text) otherwise(role, queue string) bool {
	return slices.ContainsFunc(t.statements(role, []string{"ReceiveMessage", queue}, "SendMessage", moved),
		func(s span) bool { return !t.endsWithList(s) })
}

func (t *text) movedOf(role string) (span, bool) {
	return t.statement(role, []string{"ReceiveMessage", moved})
}

// allow grants or revokes a role's right to receive from a queue.
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

// keepRight keeps the right of the function that has a queue's event, before the event moves.
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

// forgetMoved removes the rights that roles kept for a moved queue.
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

// unlist removes a queue from a statement, and the whole statement with its last queue.
func (t *text) unlist(s span, queue string) {
	rest := slices.DeleteFunc(slices.Clone(t.lines[s.from:s.to]), isItem(queue))
	if !slices.ContainsFunc(rest, func(line string) bool { return strings.Contains(line, "- !GetAtt ") }) {
		rest = nil
	}
	t.lines = slices.Replace(t.lines, s.from, s.to, rest...)
}

func (t *text) emptied(s span) []string {
	return slices.DeleteFunc(slices.Clone(t.lines[s.from:s.to]), func(line string) bool {
		return strings.Contains(line, "- !GetAtt ")
	})
}

// arnItem is a line for the list at the end of a statement.
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

// allowFirst copies the bridge's statement to a role, for one queue.
func (t *text) allowFirst(role, queue string, from span) error {
	lines := append(t.emptied(from), t.arnItem(from, queue))
	before, ok := t.statement(role, []string{"SendMessage"})
	if !ok {
		return missing("statement about sqs:SendMessage in %s", role)
	}
	at := before.to
	for isComment(t.lines[at]) { // comments that belong to the statement before
		at++
	}
	t.insert(at, lines...)
	return nil
}
