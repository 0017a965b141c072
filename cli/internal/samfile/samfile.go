// Package samfile adds queues and functions to a project's SAM template by editing its text, so that handwritten parts
// stay, comments included.
//
// A new part is a copy of the template's first one, everywhere: a queue copies WorkQueue or FifoWorkQueue with its dead
// letters and alarms, the function's event, policies, variables and the dashboard. So it includes changes made there by
// hand. Adding an existing part changes nothing.
package samfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// MissingError names a missing part of the template that an addition would copy.
type MissingError struct{ Part string }

// Error implements error.
func (e *MissingError) Error() string { return "the template has no " + e.Part }

// TakenError names a different part of the template that already has the name of a new one.
type TakenError struct{ Part string }

// Error implements error.
func (e *TakenError) Error() string { return "the template has another " + e.Part }

// KindError is a queue that exists as an SQS queue of the other kind, which SQS cannot change.
type KindError struct {
	Queue string
	FIFO  bool // of the existing queue
}

// Error implements error.
func (e *KindError) Error() string {
	kind := "standard"
	if e.FIFO {
		kind = "FIFO"
	}
	return fmt.Sprintf("the queue %s has a %s queue of SQS", e.Queue, kind)
}

type text struct {
	lines []string
	ends  string // line ends of the file; in lines they are "\n"
}

func newText(template string) *text {
	t := &text{ends: "\n"}
	if strings.Contains(template, "\r\n") {
		t.ends, template = "\r\n", strings.ReplaceAll(template, "\r\n", "\n")
	}
	if template != "" && !strings.HasSuffix(template, "\n") {
		template += "\n"
	}
	t.lines = slices.Collect(strings.Lines(template))
	return t
}

func (t *text) String() string {
	return strings.ReplaceAll(strings.Join(t.lines, ""), "\n", t.ends)
}

// indent counts the spaces before a line's text; -1 for an empty line.
func indent(line string) int {
	if strings.TrimSpace(line) == "" {
		return -1
	}
	return len(line) - len(strings.TrimLeft(line, " "))
}

func isComment(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "#") }

// span is a block of lines: a key and everything below it.
type span struct{ from, to int }

// within returns the block of a key, at any depth, inside another block.
func (t *text) within(outer span, key string) (span, bool) {
	for i := outer.from; i < outer.to; i++ {
		name, _, _ := strings.Cut(strings.TrimSpace(t.lines[i]), ":")
		if name != key || isComment(t.lines[i]) {
			continue
		}
		to := i + 1
		for j := to; j < outer.to; j++ {
			depth, comment := indent(t.lines[j]), isComment(t.lines[j])
			if depth >= 0 && depth <= indent(t.lines[i]) && !comment {
				break
			} else if depth > indent(t.lines[i]) || depth >= 0 && !comment {
				to = j + 1 // without trailing empty lines and comments, which belong to the next block
			}
		}
		return span{i, to}, true
	}
	return span{}, false
}

// section returns a part of the template that begins in the first column.
func (t *text) section(name string) (span, bool) {
	for i, line := range t.lines {
		if strings.HasPrefix(line, name+":") {
			return t.within(span{i, len(t.lines)}, name)
		}
	}
	return span{}, false
}

// entry returns a parameter, a resource or an output: a key indented by two spaces.
func (t *text) entry(section, id string) (span, bool) {
	s, ok := t.section(section)
	for i := s.from; ok && i < s.to; i++ {
		if strings.HasPrefix(t.lines[i], "  "+id+":") {
			return t.within(span{i, s.to}, id)
		}
	}
	return span{}, false
}

func (t *text) insert(at int, lines ...string) { t.lines = slices.Insert(t.lines, at, lines...) }

func (t *text) copyOf(s span, names renaming) []string {
	lines := slices.Clone(t.lines[s.from:s.to])
	for i := range lines {
		lines[i] = names.apply(lines[i])
	}
	return lines
}

// addEntry inserts a renamed copy of an entry after it, unless the copy exists.
func (t *text) addEntry(section, id string, names renaming) (added bool, err error) {
	s, ok := t.entry(section, id)
	if !ok {
		return false, missing("%s %s", section, id)
	}
	made := names.apply(id)
	if there, ok := t.entry(section, made); ok {
		if t.kind(there) != t.kind(s) {
			return false, &TakenError{section + " " + made}
		}
		return false, nil
	}
	t.insert(s.to, t.copyOf(s, names)...)
	return true, nil
}

func (t *text) kind(s span) string {
	if s, ok := t.within(s, "Type"); ok {
		return strings.TrimSpace(t.lines[s.from])
	}
	return ""
}

// renaming maps whole words to others.
type renaming []renamed

type renamed struct{ old, replacement string }

var word = regexp.MustCompile(`[A-Za-z0-9]+`)

func (r renaming) apply(line string) string {
	return word.ReplaceAllStringFunc(line, func(found string) string {
		for _, pair := range r {
			if pair.old == found {
				return pair.replacement
			}
		}
		return found
	})
}

// ID converts a name to a logical ID: "mail-out" becomes MailOut.
func ID(name string) string {
	var out strings.Builder
	for _, part := range word.FindAllString(name, -1) {
		out.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return out.String()
}

// addToLists adds "- !GetAtt made.Arn" to each list that contains first.
func (t *text) addToLists(first, made string) {
	item := regexp.MustCompile(`^ *- !GetAtt (\w+)\.Arn\s*(#.*)?$`)
	for i := 0; i < len(t.lines); i++ {
		if found := item.FindStringSubmatch(strings.TrimSuffix(t.lines[i], "\n")); len(found) < 2 || found[1] != first {
			continue
		}
		from, to := i, i+1
		for from > 0 && item.MatchString(strings.TrimSuffix(t.lines[from-1], "\n")) {
			from--
		}
		for to < len(t.lines) && item.MatchString(strings.TrimSuffix(t.lines[to], "\n")) {
			to++
		}
		there := slices.ContainsFunc(t.lines[from:to], func(line string) bool {
			return strings.HasPrefix(strings.TrimSpace(line), "- !GetAtt "+made+".Arn")
		})
		if !there {
			t.insert(to, strings.Repeat(" ", indent(t.lines[i]))+"- !GetAtt "+made+".Arn\n")
		}
		i = to
	}
}

// addInline appends text to each match, unless the match already contains it.
func (t *text) addInline(where *regexp.Regexp, addition string) (found bool) {
	for i, line := range t.lines {
		t.lines[i] = where.ReplaceAllStringFunc(line, func(list string) string {
			found = true
			if strings.Contains(list+"\x00", addition+"\x00") || strings.Contains(list, addition+",") {
				return list
			}
			return list + addition
		})
	}
	return found
}

// untaken checks that no section of the template has one of these IDs.
func (t *text) untaken(ids ...string) error {
	for _, section := range []string{"Parameters", "Mappings", "Conditions", "Resources", "Outputs"} {
		for _, id := range ids {
			if _, there := t.entry(section, id); there {
				return &TakenError{section + " " + id}
			}
		}
	}
	return nil
}

func (t *text) mentions(s span, name string) bool {
	for _, line := range t.lines[s.from:s.to] {
		if slices.Contains(word.FindAllString(line, -1), name) {
			return true
		}
	}
	return false
}

func missing(format string, values ...any) error {
	return &MissingError{fmt.Sprintf(format, values...)}
}

// fixedName matches the property that names a resource.
var fixedName = regexp.MustCompile(`^      ((?:Queue|Function|Role|LogGroup|Alarm|Dashboard)Name: \S.*)$`)

// differentNames refuses two resources with the same name, as CloudFormation would. A name written by hand is copied
// with its resource.
func (t *text) differentNames() error {
	resources, _ := t.section("Resources")
	seen := map[string]bool{}
	for _, line := range t.lines[resources.from:resources.to] {
		found := fixedName.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch {
		case found == nil:
		case seen[found[1]]:
			return &TakenError{"resource that would have " + found[1] + ": take the name out of the first one"}
		default:
			seen[found[1]] = true
		}
	}
	return nil
}
