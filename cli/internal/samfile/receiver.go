package samfile

import (
	"regexp"
	"slices"
	"strings"
)

// receives lets one function alone take a queue's wakeups: it counts them as its own, and no other role may take them.
func (t *text) receives(name, owner string) error {
	for _, id := range t.bridges() {
		t.count(id, name, id == owner)
		if err := t.allow(id+"Role", ID(name)+"Queue", id == owner); err != nil {
			return err
		}
		if s, ok := t.entry("Resources", id); ok {
			if events, ok := t.within(s, "Events"); ok && events.to == events.from+1 {
				t.lines = slices.Delete(t.lines, events.from, events.to)
			}
		}
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
		if s, _ := t.entry("Resources", id); t.mentionsLine(s, "RUNLANE_FUNCTION: bridge") {
			ids = append(ids, id)
		}
	}
	return ids
}

func (t *text) mentionsLine(s span, line string) bool {
	return slices.ContainsFunc(t.lines[s.from:s.to], func(l string) bool { return strings.TrimSpace(l) == line })
}

// owner is the function whose event a line is part of.
func (t *text) owner(event span) string {
	for _, id := range t.bridges() {
		if s, _ := t.entry("Resources", id); s.from < event.from && event.from < s.to {
			return id
		}
	}
	return ""
}

// counted is a function's list of bindings, and what stands before and behind it.
var counted = regexp.MustCompile(`^(\s*RUNLANE_BINDINGS:\s*(?:!Sub \[)?"?)([^"\s]*)((?s).*)$`)

// count makes a name one of a function's own bindings, or takes it away. A template without the list gets none.
func (t *text) count(id, name string, own bool) {
	s, _ := t.entry("Resources", id)
	for i := s.from; i < s.to; i++ {
		parts := counted.FindStringSubmatch(t.lines[i])
		if parts == nil {
			continue
		}
		names := strings.FieldsFunc(parts[2], func(r rune) bool { return r == ',' })
		names = slices.DeleteFunc(names, func(n string) bool { return n == name && !own })
		if own && !slices.Contains(names, name) {
			names = append(names, name)
		}
		t.lines[i] = parts[1] + strings.Join(names, ",") + parts[3]
	}
}

// countNone empties the list of a function that is a copy.
func (t *text) countNone(s span) {
	for i := s.from; i < s.to; i++ {
		if counted.MatchString(t.lines[i]) {
			t.lines[i] = strings.Repeat(" ", indent(t.lines[i])) + "RUNLANE_BINDINGS: \"\"\n"
		}
	}
}

// statement is the one of a role that has an action.
func (t *text) statement(role, action string) (span, bool) {
	s, _ := t.entry("Resources", role)
	for i := s.from; i < s.to; i++ {
		if !strings.HasPrefix(strings.TrimSpace(t.lines[i]), "- Effect:") {
			continue
		}
		to := i + 1
		for to < s.to && indent(t.lines[to]) > indent(t.lines[i]) {
			to++
		}
		if found := (span{i, to}); t.mentions(found, action) {
			return found, true
		}
	}
	return span{}, false
}

// receiving is the statement of a role about the queues that it takes wakeups of. Templates of earlier versions have
// one for all that may be done with any queue: all that is left as it is.
func (t *text) receiving(role string) (span, bool) {
	s, ok := t.statement(role, "ReceiveMessage")
	return s, ok && !t.mentions(s, "SendMessage")
}

// allow lets a role take a queue's wakeups, or no longer.
func (t *text) allow(role, queue string, allowed bool) error {
	s, ok := t.receiving(role)
	item := func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "- !GetAtt "+queue+".Arn") }
	there := ok && slices.ContainsFunc(t.lines[s.from:s.to], item)
	switch {
	case there == allowed:
	case !ok:
		if from, can := t.receiving("BridgeRole"); can {
			return t.allowFirst(role, queue, from)
		}
		first, _ := t.entry("Resources", "BridgeRole")
		if _, all := t.statement("BridgeRole", "ReceiveMessage"); !all && t.mentions(first, "ReceiveMessage") {
			return missing("statement about sqs:ReceiveMessage with \"- !GetAtt WorkQueue.Arn\" in BridgeRole")
		}
	case allowed:
		t.insert(s.to, t.arnItem(s, queue))
	default:
		rest := slices.DeleteFunc(slices.Clone(t.lines[s.from:s.to]), item)
		if !slices.ContainsFunc(rest, func(line string) bool { return strings.Contains(line, "- !GetAtt ") }) {
			rest = nil
		}
		t.lines = slices.Replace(t.lines, s.from, s.to, rest...)
	}
	return nil
}

// arnItem is a line of the list that a statement ends with.
func (t *text) arnItem(s span, queue string) string {
	return strings.Repeat(" ", indent(t.lines[s.to-1])) + "- !GetAtt " + queue + ".Arn\n"
}

// allowFirst gives a role the statement of the bridge's own, about one queue.
func (t *text) allowFirst(role, queue string, from span) error {
	lines := slices.DeleteFunc(slices.Clone(t.lines[from.from:from.to]), func(line string) bool {
		return strings.Contains(line, "- !GetAtt ")
	})
	lines = append(lines, t.arnItem(from, queue))
	before, ok := t.statement(role, "SendMessage")
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
