package samfile_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/cli/internal/samfile"
	"github.com/runlane/runlane-go/internal/proof/e2e/samtemplate"
)

// entryOf returns the lines of a resource: from its key to the next key two blanks deep.
func entryOf(template, id string) string {
	var out []string
	on := false
	key := regexp.MustCompile(`^  [A-Za-z0-9]+:`)
	for _, line := range strings.Split(template, "\n") {
		if key.MatchString(line) {
			on = strings.HasPrefix(line, "  "+id+":")
		}
		if on {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func edited(t *testing.T, text, old, replacement string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("the template has no %q", old)
	}
	return strings.Replace(text, old, replacement, 1)
}

// A comment that stands less deep than what it is about ends the entry for this package alone, if it does not take care.
func TestByHand_CommentTwoBlanksDeep_EndsNoBlock(t *testing.T) {
	t.Parallel()
	before := read(t, full)
	at := strings.Index(before, "\n  WorkQueue:")
	before = before[:at] + edited(t, before[at:], "      VisibilityTimeout:", "  # an attempt and five more\n      VisibilityTimeout:")
	after, err := samfile.AddQueue(before, samfile.Queue{Name: "orders"})
	if err != nil {
		return // refused, which is right
	}
	for _, property := range []string{"VisibilityTimeout:", "RedrivePolicy:"} {
		if !strings.Contains(entryOf(after, "WorkQueue"), property) {
			t.Errorf("WorkQueue lost %s", property)
		}
	}
	if !strings.Contains(entryOf(after, "OrdersQueue"), "!GetAtt OrdersDeadLetters.Arn") {
		t.Error("OrdersQueue has not its own dead letters")
	}
}

// The same in Resources between two of them.
func TestByHand_HeadingInTheFirstColumn_EndsNoSection(t *testing.T) {
	t.Parallel()
	before := edited(t, read(t, full), "\n  BridgeLogs:\n", "\n# ---- logs ----\n  BridgeLogs:\n")
	after, err := samfile.AddQueue(before, samfile.Queue{Name: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	for _, alarm := range []string{"OrdersDeadLettersAlarm", "OrdersOldestMessageAlarm"} {
		if entryOf(after, alarm) == "" {
			t.Errorf("no %s, and no error", alarm)
		}
	}
}

// Lists that are written in another way get nothing, silently.
func TestByHand_PoliciesWrittenInAnotherWay_HaveTheQueueOrAreNamed(t *testing.T) {
	t.Parallel()
	block := "                Resource:\n                  - !GetAtt WorkQueue.Arn\n                  - !GetAtt FifoWorkQueue.Arn\n"
	for name, other := range map[string]string{
		"flow":    "                Resource: [!GetAtt WorkQueue.Arn, !GetAtt FifoWorkQueue.Arn]\n",
		"comment": "                Resource:\n                  - !GetAtt WorkQueue.Arn # standard\n                  - !GetAtt FifoWorkQueue.Arn\n",
		"long":    "                Resource:\n                  - Fn::GetAtt: [WorkQueue, Arn]\n                  - !GetAtt FifoWorkQueue.Arn\n",
		"quoted":  "                Resource:\n                  - !GetAtt \"WorkQueue.Arn\"\n                  - !GetAtt FifoWorkQueue.Arn\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := read(t, full)
			if !strings.Contains(text, block) {
				t.Fatal("no block")
			}
			after, err := samfile.AddQueue(strings.ReplaceAll(text, block, other), samfile.Queue{Name: "orders"})
			if err != nil {
				return // refused, which is right
			}
			for _, role := range []string{"BridgeRole", "RelayRole", "TickRole"} {
				if !strings.Contains(entryOf(after, role), "OrdersQueue") {
					t.Errorf("%s has no right to OrdersQueue, and no error", role)
				}
			}
		})
	}
}

// Names that the command takes and whose ids are parameters or parts of the template.
func TestByHand_NamesThatTheTemplateHas_AreRefused(t *testing.T) {
	t.Parallel()
	for _, q := range []samfile.Queue{{Name: "fifo"}, {Name: "standard"}, {Name: "tick"}, {Name: "work-dead-letters"}, {Name: "relay-failures"}} {
		t.Run(q.Name, func(t *testing.T) {
			t.Parallel()
			after, err := samfile.AddQueue(read(t, full), q)
			if err != nil {
				return // refused, which is right
			}
			id := samfile.ID(q.Name)
			parameters := after[:strings.Index(after, "\nResources:")]
			if regexp.MustCompile(`\n  ` + id + `Queue:`).MatchString(parameters) {
				t.Errorf("resource %sQueue has the id of a parameter", id)
			}
			if strings.Contains(entryOf(after, id+"DeadLetters"), "denyAll") {
				t.Errorf("%sQueue redrives to a queue that denies all:\n%s", id, entryOf(after, id+"DeadLetters"))
			}
			names := map[string]bool{}
			for _, m := range regexp.MustCompile(`QueueName: !Sub "(.*)"`).FindAllStringSubmatch(after, -1) {
				if names[m[1]] {
					t.Errorf("two SQS queues are called %s", m[1])
				}
				names[m[1]] = true
			}
			if !strings.Contains(entryOf(after, id+"OldestMessageAlarm"), id+"Queue.QueueName") {
				t.Errorf("%sOldestMessageAlarm watches another queue", id)
			}
		})
	}
}

// Who changed the queues' names by hand gets two queues of one name.
func TestByHand_QueueNameByHand_IsNotTakenTwice(t *testing.T) {
	t.Parallel()
	before := strings.ReplaceAll(read(t, full), "${AWS::StackName}-work", "${AWS::StackName}-${Environment}-work")
	after, err := samfile.AddQueue(before, samfile.Queue{Name: "orders"})
	if err != nil {
		return // refused, which is right
	}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`QueueName: !Sub "(.*)"`).FindAllStringSubmatch(after, -1) {
		if names[m[1]] {
			t.Errorf("two SQS queues are called %s", m[1])
		}
		names[m[1]] = true
	}
}

// A queue that goes on from one further function to another keeps the limits of the first.
func TestByHand_QueueMovesTwice_HasTheLastOnesLimits(t *testing.T) {
	t.Parallel()
	text := addQueue(t, read(t, full), samfile.Queue{Name: "reports"})
	text, err := samfile.AddFunction(text, samfile.Function{Name: "fast", Queues: []string{"reports"}, Concurrency: 500})
	if err != nil {
		t.Fatal(err)
	}
	text, err = samfile.AddFunction(text, samfile.Function{Name: "slow", Queues: []string{"reports"}, Timeout: 900, Concurrency: 5})
	if err != nil {
		t.Fatal(err)
	}
	slow := entryOf(text, "SlowBridge")
	if strings.Contains(slow, "Fast") || !strings.Contains(slow, "!Ref SlowConcurrency") {
		t.Errorf("the queue keeps another function's limits:\n%s", slow[strings.Index(slow, "Events:"):])
	}
	if fast := entryOf(text, "FastBridge"); strings.Contains(fast, "Events:") {
		t.Errorf("a function without a queue has an empty list of events:\n%s", fast)
	}
	text = addFunction(t, text, samfile.Function{Name: "fast", Queues: []string{"reports"}}) // and back again
	for _, fault := range samtemplate.Faults(evaluate(t, text, nil)) {
		t.Error(fault)
	}
}

// Visibility timeouts written by hand or in block form stay below the new function's timeout.
func TestByHand_VisibilityFollowsTheFunctionOrIsNamed(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]string{
		"number": "VisibilityTimeout: 360",
		"block":  "VisibilityTimeout:\n        Fn::FindInMap:\n          - Visibility\n          - !Ref BridgeTimeout\n          - Seconds",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := addQueue(t, read(t, full), samfile.Queue{Name: "reports"})
			at := strings.Index(before, "\n  ReportsQueue:")
			before = before[:at] + edited(t, before[at:], "VisibilityTimeout: !FindInMap [Visibility, !Ref BridgeTimeout, Seconds]", other)
			after, err := samfile.AddFunction(before, samfile.Function{Name: "slow", Queues: []string{"reports"}, Timeout: 900})
			if err != nil {
				return // refused, which is right
			}
			if !strings.Contains(entryOf(after, "ReportsQueue"), "SlowTimeout") {
				t.Errorf("a function of 900 s on\n%s", entryOf(after, "ReportsQueue"))
			}
		})
	}
}

// Two names with one id: the second command changes the first function.
func TestByHand_TwoFunctionNamesOneID_AreRefused(t *testing.T) {
	t.Parallel()
	text := addQueue(t, addQueue(t, read(t, full), samfile.Queue{Name: "a"}), samfile.Queue{Name: "b"})
	text, err := samfile.AddFunction(text, samfile.Function{Name: "v1", Queues: []string{"a"}, Timeout: 900})
	if err != nil {
		t.Fatal(err)
	}
	text, err = samfile.AddFunction(text, samfile.Function{Name: "v-1", Queues: []string{"b"}, Timeout: 30})
	if err != nil {
		return // refused, which is right
	}
	if !strings.Contains(entryOf(text, "V1Timeout"), `"900"`) || strings.Contains(entryOf(text, "V1Timeout"), `Default: "30"`) {
		t.Errorf("function v1 got the limits of v-1:\n%s", entryOf(text, "V1Timeout"))
	}
}

// "tick-" is taken as a name, and shares TickConcurrency with the tick.
func TestByHand_NameThatMeansTheTick_ChangesNothingOfIt(t *testing.T) {
	t.Parallel()
	text := addQueue(t, read(t, full), samfile.Queue{Name: "a"})
	text, err := samfile.AddFunction(text, samfile.Function{Name: "tick-", Queues: []string{"a"}, Concurrency: 200})
	if err != nil {
		return // refused, which is right
	}
	if strings.Contains(entryOf(text, "TickConcurrency"), "Default: 200") {
		t.Errorf("the tick reserves 200 environments:\n%s", entryOf(text, "TickConcurrency"))
	}
	if n := strings.Count(entryOf(text, "RefusedWakeupsAlarm"), "- Id: tick\n"); n != 1 {
		t.Errorf("%d metrics tick in one alarm", n)
	}
}

// A metric of the board with a label.
func TestByHand_LabelOnTheBoard_LeavesJSON(t *testing.T) {
	t.Parallel()
	before := edited(t, read(t, full), `[".",".",".","${FifoWorkQueue.QueueName}"]]}}`, `[".",".",".","${FifoWorkQueue.QueueName}",{"label":"FIFO"}]]}}`)
	after, err := samfile.AddQueue(before, samfile.Queue{Name: "orders"})
	if err != nil {
		return // refused, which is right
	}
	for i, line := range strings.Split(after, "\n") {
		if strings.TrimSpace(line) == "," {
			t.Errorf("line %d is a comma alone", i+1)
		}
	}
}

// RUNLANE_QUEUES of the functions is written in another way than the outputs.
func TestByHand_BindingsInAnotherWay_AreNamed(t *testing.T) {
	t.Parallel()
	before := read(t, full)
	at := strings.Index(before, "        RUNLANE_QUEUES: !Sub\n")
	before = before[:at] + edited(t, before[at:], `"${StandardQueue}=${WorkQueue}${Fifo}"`, `"${StandardQueue}=${WorkQueue.QueueUrl}${Fifo}"`)
	after, err := samfile.AddQueue(before, samfile.Queue{Name: "orders"})
	if err != nil {
		return // refused, which is right
	}
	globals := after[strings.Index(after, "\nGlobals:"):strings.Index(after, "\nResources:")]
	if !strings.Contains(globals, "OrdersQueue") {
		t.Error("functions do not know the queue, outputs do")
	}
}

// A template of Windows.
func TestByHand_EndsOfLines_Stay(t *testing.T) {
	t.Parallel()
	before := strings.ReplaceAll(read(t, full), "\n", "\r\n")
	after, err := samfile.AddQueue(before, samfile.Queue{Name: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	want, _ := samfile.AddQueue(read(t, full), samfile.Queue{Name: "orders"})
	if strings.ReplaceAll(after, "\r\n", "\n") != want {
		t.Error("another template than with \\n")
	}
	if strings.Count(after, "\n") != strings.Count(after, "\r\n") {
		t.Error("mixed ends of lines")
	}
}

// The list of bindings and the role of a function, in other ways to write them.
func TestByHand_BindingsOfABridge_FollowOrAreNamed(t *testing.T) {
	t.Parallel()
	const (
		list = `RUNLANE_BINDINGS: !Sub ["${StandardQueue}${Fifo}", {Fifo: !If [HasFifo, !Sub ",${FifoQueue}", ""]}]`
		role = "RUNLANE_FUNCTION: bridge\n"
	)
	for name, c := range map[string]struct{ old, other, want string }{
		"shipped":      {list, list, `RUNLANE_BINDINGS: !Sub ["${StandardQueue}${Fifo},reports", {`},
		"quoted":       {list, `RUNLANE_BINDINGS: "default" # own`, `RUNLANE_BINDINGS: "default,reports" # own`},
		"plain":        {list, `RUNLANE_BINDINGS: default # own`, `RUNLANE_BINDINGS: default,reports # own`},
		"empty":        {list, `RUNLANE_BINDINGS: ""`, `RUNLANE_BINDINGS: "reports"`},
		"ref":          {list, `RUNLANE_BINDINGS: !Ref StandardQueue`, ""},
		"sub":          {list, `RUNLANE_BINDINGS: !Sub "${StandardQueue}"`, ""},
		"join":         {list, `RUNLANE_BINDINGS: !Join [",", [!Ref StandardQueue]]`, ""},
		"block":        {list, "RUNLANE_BINDINGS: !Sub\n            - \"${StandardQueue}\"\n            - {}", ""},
		"folded":       {list, "RUNLANE_BINDINGS: >-\n            default", ""},
		"single":       {list, `RUNLANE_BINDINGS: 'default'`, ""},
		"blank":        {list, `RUNLANE_BINDINGS: "default, other"`, ""},
		"none":         {list, `RUNLANE_BINDINGS:`, ""},
		"role quoted":  {role, "RUNLANE_FUNCTION: \"bridge\"\n", `${Fifo},reports", {`},
		"role single":  {role, "RUNLANE_FUNCTION: 'bridge'\n", `${Fifo},reports", {`},
		"role remarks": {role, "RUNLANE_FUNCTION: bridge # role\n", `${Fifo},reports", {`},
		"role by ref":  {role, "RUNLANE_FUNCTION: !Ref Role\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after, err := samfile.AddQueue(edited(t, read(t, full), c.old, c.other), samfile.Queue{Name: "reports"})
			if c.want == "" {
				if _, ok := errors.AsType[*samfile.MissingError](err); !ok {
					t.Errorf("%v, want a refusal; Bridge is\n%s", err, entryOf(after, "Bridge"))
				}
				return
			}
			if err != nil || !strings.Contains(entryOf(after, "Bridge"), c.want) {
				t.Fatalf("%v, want %s in\n%s", err, c.want, entryOf(after, "Bridge"))
			}
			after = addFunction(t, after, samfile.Function{Name: "slow", Queues: []string{"reports"}})
			line := regexp.MustCompile("RUNLANE_BINDINGS: .*").FindString(entryOf(after, "Bridge"))
			if line == "" || strings.Contains(line, "reports") {
				t.Errorf("after the move Bridge has %s", line)
			}
		})
	}
}

// The statement about the queues of a function's events, in other ways to write it.
func TestByHand_ReceivingInAnotherWay_FollowsOrIsNamed(t *testing.T) {
	t.Parallel()
	const (
		actions = "                Action:\n                  - sqs:ChangeMessageVisibility\n" +
			"                  - sqs:DeleteMessage # the mappings, as ReceiveMessage\n                  - sqs:ReceiveMessage\n"
		list   = "                  - !GetAtt WorkQueue.Arn\n                  - !GetAtt FifoWorkQueue.Arn\n"
		behind = "                Resource:\n" + list
	)
	for name, c := range map[string]struct {
		other   string
		refused bool
	}{
		"flow":         {actions + "                Resource: [!GetAtt WorkQueue.Arn, !GetAtt FifoWorkQueue.Arn]\n", true},
		"long":         {actions + behind[:strings.Index(behind, "!GetAtt Fifo")-2] + "- Fn::GetAtt: [FifoWorkQueue, Arn]\n", true},
		"first":        {behind + actions, true},
		"condition":    {actions + behind + "                Condition: {Bool: {\"aws:SecureTransport\": true}}\n", true},
		"remark":       {actions + behind + "                # and no other\n", false},
		"less deep":    {actions + strings.ReplaceAll(behind, "  - ", "- "), false},
		"flow actions": {"                Action: [sqs:DeleteMessage, sqs:ReceiveMessage]\n" + behind, false},
		"another before": {
			"                Action: sqs:ReceiveMessage\n                Resource: !GetAtt RelayFailures.Arn\n" +
				"              - Effect: Allow\n" + actions + behind, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := edited(t, read(t, full), actions+behind, c.other)
			text, err := samfile.AddQueue(before, samfile.Queue{Name: "reports"})
			if c.refused {
				if _, ok := errors.AsType[*samfile.MissingError](err); !ok {
					t.Errorf("%v, want a refusal; BridgeRole is\n%s", err, entryOf(text, "BridgeRole"))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			text = addFunction(t, text, samfile.Function{Name: "slow", Queues: []string{"reports"}})
			known := samtemplate.Faults(evaluate(t, before, nil))
			for _, fault := range samtemplate.Faults(evaluate(t, text, nil)) {
				if name != "another before" || !strings.Contains(fault, "RelayFailures") {
					t.Error(fault, known)
				}
			}
		})
	}
}
