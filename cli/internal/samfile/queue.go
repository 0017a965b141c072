package samfile

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// Queue is a queue of the application with a separate SQS queue.
type Queue struct {
	Name string
	FIFO bool
}

// source names the parts that a new queue is copied from.
type source struct {
	queue, deadLetters, deadLettersAlarm, ageAlarm, event string
}

var (
	standardSource = source{"WorkQueue", "WorkDeadLetters", "WorkDeadLettersAlarm", "OldestMessageAlarm", "Wakeups"}
	minimalSource  = source{"WorkQueue", "DeadLetters", "", "", "Wakeups"}
	fifoSource     = source{
		"FifoWorkQueue", "FifoWorkDeadLetters", "FifoWorkDeadLettersAlarm", "FifoOldestMessageAlarm", "FifoWakeups",
	}
)

// Places of the template that list all queues, or grant rights to them.
var (
	bindings = regexp.MustCompile(`=\$\{WorkQueue\}(?:\$\{Fifo\})?(?:,[A-Za-z0-9._-]+=\$\{\w+\})*`)
	arns     = regexp.MustCompile(`"\$\{WorkQueue\.Arn\}"(?:,"\$\{\w+\.Arn\}")*`)
)

// HasQueue reports whether a queue of the application has a separate SQS queue.
func HasQueue(template, name string) bool {
	for _, list := range bindings.FindAllString(template, -1) {
		if slices.Contains(strings.Split(list, ","), binding(name)) {
			return true
		}
	}
	return false
}

func binding(name string) string { return name + "=${" + ID(name) + "Queue}" }

// AddQueue returns the template with a separate SQS queue for a queue of the application, bound to the bridge.
func AddQueue(template string, q Queue) (string, error) {
	t := newText(template)
	from := standardSource
	if _, full := t.entry("Resources", standardSource.deadLetters); !full {
		from = minimalSource
	}
	if q.FIFO {
		from = fifoSource
	}
	id := ID(q.Name)
	names := renaming{
		{from.queue, id + "Queue"},
		{from.deadLetters, id + "DeadLetters"},
		{from.deadLettersAlarm, id + "DeadLettersAlarm"},
		{from.ageAlarm, id + "OldestMessageAlarm"},
		// FifoQueue switches the template's own FIFO queue, but the new queue always exists.
		{"AlarmsFifoDeadLetters", "AlarmsDeadLetters"},
		{"AlarmsFifoOldestMessage", "AlarmsOldestMessage"},
	}
	if !HasQueue(template, q.Name) { // otherwise it exists, perhaps with parts removed by hand
		for _, part := range []string{
			"Queue", "DeadLetters", "DeadLettersAlarm", "OldestMessageAlarm", "QueueArn", "DeadLettersUrl",
		} {
			if err := t.untaken(id + part); err != nil {
				return "", err
			}
		}
	} else if there, ok := t.entry("Resources", id+"Queue"); ok && t.mentions(there, "FifoQueue") != q.FIFO {
		return "", &KindError{q.Name, !q.FIFO}
	}
	if err := t.addRule(id, q.Name); err != nil {
		return "", err
	}
	if err := t.addQueueResources(from, names, q); err != nil {
		return "", err
	}
	if err := t.addEvent(from.event, append(names, renamed{from.event, id + "Wakeups"})); err != nil {
		return "", err
	}
	t.addToLists("WorkQueue", id+"Queue")
	event, _ := t.anyEvent(id + "Wakeups")
	if err := t.receives(q.Name, t.owner(event)); err != nil {
		return "", err
	}
	if !t.addInline(bindings, ","+binding(q.Name)) {
		return "", missing("RUNLANE_QUEUES with ${WorkQueue}")
	}
	t.addInline(arns, `,"${`+id+`Queue.Arn}"`)
	t.addToBoard(
		renamed{`"${FifoWorkQueue.QueueName}`, `"${` + id + `Queue.QueueName}`},
		renamed{`"${FifoWorkDeadLetters.QueueName}`, `"${` + id + `DeadLetters.QueueName}`},
	)
	for _, output := range []renamed{
		{from.queue + "Arn", id + "QueueArn"}, {from.deadLetters + "Url", id + "DeadLettersUrl"},
	} {
		if _, err := t.addEntry("Outputs", output.old, append(names, output)); err != nil && from != minimalSource {
			return "", err
		}
	}
	if err := t.checkQueue(id, q); err != nil {
		return "", err
	}
	return t.String(), t.differentNames()
}

// carriers are the parameters that name the application's queue for one of the template's SQS queues.
var carriers = []string{"StandardQueue", "FifoQueue"}

// addRule makes CloudFormation refuse parameters that bind the queue a second time: no function would open.
func (t *text) addRule(id, name string) error {
	var others []string
	for _, parameter := range carriers {
		s, there := t.entry("Parameters", parameter)
		if !there {
			continue
		}
		if value, ok := t.within(s, "Default"); ok {
			if _, text, _ := strings.Cut(t.lines[value.from], ":"); strings.Trim(text, " \"'\n") == name {
				return &TakenError{"place for " + name + ": it is the Default of " + parameter}
			}
		}
		others = append(others, parameter)
	}
	rules, ok := t.section("Rules")
	if _, there := t.entry("Rules", id+"QueueDiffers"); there || !ok || len(others) < len(carriers) {
		return nil // the minimal template has none of these parameters
	}
	is := func(parameter string) string { return "!Equals [!Ref " + parameter + `, "` + name + `"]` }
	t.insert(
		rules.to,
		"  "+id+"QueueDiffers:\n",
		"    Assertions:\n",
		"      - Assert: !Not [!Or ["+is("StandardQueue")+", "+is("FifoQueue")+"]]\n",
		"        AssertDescription: "+name+" has a separate SQS queue; let StandardQueue and FifoQueue name others\n",
	)
	return nil
}

// checkQueue checks that the new queue is everywhere the first one is. Copying misses places that differ from the
// shipped template.
func (t *text) checkQueue(id string, q Queue) error {
	names := map[string]bool{}
	for _, line := range t.lines {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "QueueName:")
		if ok && names[name] {
			return &TakenError{"SQS queue called" + name}
		}
		names[name] = ok
	}
	for _, place := range []string{"Globals", "Outputs"} {
		s, _ := t.section(place)
		lines := strings.Join(t.lines[s.from:s.to], "")
		has := strings.Contains(lines, ","+binding(q.Name))
		if !has && (place == "Globals" || strings.Contains(lines, "  Queues:")) {
			return missing("RUNLANE_QUEUES with ${WorkQueue} in %s", place)
		}
	}
	resources, _ := t.section("Resources")
	for i := resources.from; i < resources.to; i++ {
		key := strings.TrimSuffix(t.lines[i], "\n")
		if indent(key) != 2 || isComment(key) || !strings.HasSuffix(key, ":") {
			continue
		}
		s, _ := t.entry("Resources", strings.Trim(key, " :"))
		kind := t.kind(s)
		rights := strings.HasSuffix(kind, "::Role") || strings.HasSuffix(kind, "Policy")
		if rights && t.mentions(s, "WorkQueue") && !t.mentions(s, id+"Queue") {
			return missing("list of rights with \"- !GetAtt WorkQueue.Arn\" in %s", strings.Trim(key, " :"))
		}
	}
	return nil
}

func (t *text) addQueueResources(from source, names renaming, q Queue) error {
	comment := "The application's queue " + q.Name + ", with a separate SQS queue."
	for _, id := range []string{from.deadLetters, from.queue} {
		added, err := t.addEntry("Resources", id, names)
		if err != nil {
			return err
		}
		if !added {
			continue
		}
		s, _ := t.entry("Resources", names.apply(id))
		for i := s.from; i < s.to; i++ {
			t.lines[i] = strings.ReplaceAll(
				t.lines[i], "${AWS::StackName}-work", "${AWS::StackName}-"+strings.ReplaceAll(q.Name, ".", "-"),
			)
		}
		if id == from.queue {
			t.insert(s.from, "  # "+comment+"\n")
		}
	}
	for _, id := range []string{from.deadLettersAlarm, from.ageAlarm} {
		var absent *MissingError
		if _, err := t.addEntry("Resources", id, names); err != nil && !errors.As(err, &absent) {
			return err // a template without alarms gets none
		}
	}
	return nil
}

func (t *text) addEvent(from string, names renaming) error {
	bridge, ok := t.entry("Resources", "Bridge")
	if !ok {
		return missing("Resources Bridge")
	}
	event, ok := t.within(bridge, from)
	if !ok {
		return missing("event %s of Bridge", from)
	}
	if _, there := t.anyEvent(names.apply(from)); there {
		return nil
	}
	var lines []string
	for _, line := range t.copyOf(event, names) {
		if !strings.Contains(line, "!If [HasFifo,") {
			lines = append(lines, line)
		}
	}
	events, ok := t.within(bridge, "Events")
	if !ok {
		return missing("Events of Bridge")
	}
	t.insert(events.to, lines...)
	return nil
}

func (t *text) anyEvent(name string) (span, bool) {
	resources, ok := t.section("Resources")
	if !ok {
		return span{}, false
	}
	return t.within(resources, name)
}

// addToBoard shows a new queue or function in the dashboard. In a list of metrics "." repeats the cell above. So the
// copy goes before the original with all cells that differ, and the original's first line is written out if its "."
// would now repeat something else.
func (t *text) addToBoard(names ...renamed) {
	for _, pair := range names {
		if strings.Contains(t.String(), pair.replacement+`"`) {
			continue
		}
		var above []string
		for i := 0; i < len(t.lines); i++ {
			first := expandedCells(t.lines[i], above)
			if first == nil || !strings.Contains(t.lines[i], pair.old+`"`) {
				above = first
				continue
			}
			above = first
			to := i + 1
			for strings.Contains(t.lines[to-1], `],`) && to < len(t.lines) && repeats.MatchString(t.lines[to]) {
				above = expandedCells(t.lines[to], above)
				to++
			}
			var lines []string
			for _, line := range t.lines[i:to] {
				lines = append(lines, metric(strings.ReplaceAll(line, pair.old+`"`, pair.replacement+`"`)))
			}
			if !slices.Equal(expandedCells(t.lines[i], above), first) {
				cells := strings.ReplaceAll(strings.Join(first, ","), "$", "$$")
				t.lines[i] = row.ReplaceAllString(t.lines[i], "${1}"+cells)
			}
			t.insert(i, lines...)
			i += 2*len(lines) - 1
		}
	}
}

// row matches a metric in the dashboard: namespace, name, dimension and its value.
var row = regexp.MustCompile(`^( *\[)("[^"]*"),("[^"]*"),("[^"]*"),("[^"]*")`)

// expandedCells returns the cells of a metric with "." replaced by the cells above; nil if the line is not a metric.
func expandedCells(line string, above []string) []string {
	found := row.FindStringSubmatch(line)
	if found == nil {
		return nil
	}
	cells := found[2:]
	for i := range cells {
		if cells[i] == `"."` && above != nil {
			cells[i] = above[i]
		}
	}
	return cells
}

// repeats matches a metric with the same dimension value as the line above.
var repeats = regexp.MustCompile(`^ *\["[^"]*","[^"]*","[^"]*","\."[],]`)

// metric ends a metric's line with a comma, since others follow.
func metric(line string) string { return line[:strings.Index(line, `]`)+1] + ",\n" }
