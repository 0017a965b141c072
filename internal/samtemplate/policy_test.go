package samtemplate

import (
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/sqstransport"
)

// unrecorded are the permissions that no code of the functions uses, so that no recording can show them.
var unrecorded = map[string][]string{
	"bridge": {
		// the two event source mappings, in the function's name
		"sqs:DeleteMessage ${WorkQueue.Arn}", "sqs:GetQueueAttributes ${WorkQueue.Arn}", "sqs:ReceiveMessage ${WorkQueue.Arn}",
		"sqs:DeleteMessage ${FifoWorkQueue.Arn}", "sqs:GetQueueAttributes ${FifoWorkQueue.Arn}", "sqs:ReceiveMessage ${FifoWorkQueue.Arn}",
		// Lambda's logging, in its streams of the function's own log group
		"logs:CreateLogStream ${BridgeLogs.Arn}", "logs:PutLogEvents ${BridgeLogs.Arn}",
	},
	"relay": {
		"dynamodb:DescribeStream ${Table.StreamArn}", "dynamodb:GetRecords ${Table.StreamArn}", "dynamodb:GetShardIterator ${Table.StreamArn}",
		"dynamodb:ListStreams *", // AWS offers it for everything only
		"sqs:SendMessage ${RelayFailures.Arn}",
		"logs:CreateLogStream ${RelayLogs.Arn}", "logs:PutLogEvents ${RelayLogs.Arn}",
	},
	"tick": {
		"sqs:SendMessage ${TickDeadLetters.Arn}", // Lambda, after an invocation that failed
		"logs:CreateLogStream ${TickLogs.Arn}", "logs:PutLogEvents ${TickLogs.Arn}",
	},
	"schedule": {"lambda:InvokeFunction ${Tick.Arn}:live", "sqs:SendMessage ${TickDeadLetters.Arn}"},
}

// allowed lists what a role of the template allows, as "action resource".
func allowed(t *testing.T, template *Template, role string) []string {
	t.Helper()
	found := map[string]bool{}
	for _, policy := range listAt(template.Resources[role].Properties, "Policies") {
		for _, statement := range listAt(policy, "PolicyDocument", "Statement") {
			for _, key := range slices.Sorted(maps.Keys(statement.(map[string]any))) {
				if !slices.Contains([]string{"Sid", "Effect", "Action", "Resource"}, key) {
					t.Errorf("%s has a statement with %s", role, key)
				}
			}
			if textAt(statement, "Effect") != "Allow" {
				t.Errorf("%s has a statement that does not allow", role)
			}
			for _, action := range oneOrMany(at(statement, "Action")) {
				for _, resource := range oneOrMany(at(statement, "Resource")) {
					found[action+" "+resource] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func oneOrMany(value any) (list []string) {
	if many, ok := value.([]any); ok {
		for _, v := range many {
			list = append(list, fmt.Sprint(v))
		}
		return list
	}
	return []string{fmt.Sprint(value)}
}

// The functions run for real, each as a process behind Lambda's Runtime API, through every path that calls AWS. What each was seen
// to call is what its role allows, beside what is listed above: a path that is missing here shows as a permission too many, one
// that is missing in the template as a permission too few.
func TestPolicies_AllowWhatTheFunctionsCallAndNothingElse(t *testing.T) {
	t.Parallel()
	template := evaluate(t, withFIFO)
	s := deployLocally(t, busyProgram, "on")
	granted := map[string][]string{}
	for role, name := range map[string]string{"bridge": "BridgeRole", "relay": "RelayRole", "tick": "TickRole"} {
		granted[role] = allowed(t, template, name)
	}
	s.liveThroughEverything(t, granted)
	s.checkOperations(t)
	s.checkOutside(t)
	for role := range granted {
		for _, permission := range s.recorders[role].permissions(t) {
			if !slices.Contains(granted[role], permission) {
				t.Errorf("%s calls %s, which its role does not allow", role, permission)
			}
		}
		for _, permission := range s.notSeen(t, granted, role) {
			t.Errorf("%s may %s, which it was not seen to do", role, permission)
		}
	}
}

// notSeen lists what a role is granted and was not seen to do so far, but for what no recording can show.
func (s *stack) notSeen(t *testing.T, granted map[string][]string, role string) (list []string) {
	t.Helper()
	seen := s.recorders[role].permissions(t)
	for _, permission := range granted[role] {
		if !slices.Contains(seen, permission) && !slices.Contains(unrecorded[role], permission) {
			list = append(list, permission)
		}
	}
	return list
}

// uncalled are operations of storage and transport that no function reaches, so that nothing can be missing for them.
var uncalled = map[string]string{
	"DeleteItem":         "pruning, and resetting an idempotency key: operators (the permission of that name is for transactions)",
	"Scan":               "the invariant checker: operators and tests",
	"ReceiveMessage":     "long-lived workers",
	"DeleteMessageBatch": "long-lived workers",
}

// checkOutside compares the documentation for programs that only trigger with what one was seen to call.
func (s *stack) checkOutside(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../../docs/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	_, paragraph, found := strings.Cut(string(text), "\nA program that only triggers needs")
	if !found {
		t.Fatal("docs/deploying.md does not say what a program needs that only triggers")
	}
	paragraph, _, _ = strings.Cut(paragraph, "\n\n")
	documented, seen := map[string]bool{}, map[string]bool{}
	for _, match := range regexp.MustCompile("`(?:dynamodb:|sqs:)?([A-Z][A-Za-z]+)`").FindAllStringSubmatch(paragraph, -1) {
		documented[match[1]] = true
	}
	for _, permission := range s.outside.permissions(t) {
		action, resource, _ := strings.Cut(permission, " ")
		_, operation, _ := strings.Cut(action, ":")
		seen[operation] = true
		if strings.Contains(resource, "/index/") && (operation != "Query" || !strings.HasSuffix(resource, "/due")) {
			t.Errorf("a program that triggers calls %s", permission)
		}
	}
	seen["BatchGetItem"] = true // only to offer a slot that it lost to another
	equal(t, "what a program needs that triggers", slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(seen)))
}

// checkOperations proves that the recording met every operation that there is.
func (s *stack) checkOperations(t *testing.T) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range s.recorders {
		for _, operation := range r.operations() {
			seen[operation] = true
		}
	}
	for _, api := range []reflect.Type{reflect.TypeFor[dynamostore.API](), reflect.TypeFor[sqstransport.API]()} {
		for i := range api.NumMethod() {
			if name := api.Method(i).Name; seen[name] == (uncalled[name] != "") {
				t.Errorf("%s.%s: seen %t, listed as not called by functions: %q", api, name, seen[name], uncalled[name])
			}
		}
	}
}

func TestPolicies_WhatNoRecordingShows_IsAllowed(t *testing.T) {
	t.Parallel()
	template := evaluate(t, withFIFO)
	for role, name := range map[string]string{"bridge": "BridgeRole", "relay": "RelayRole", "tick": "TickRole", "schedule": "TickScheduleRole"} {
		granted := allowed(t, template, name)
		for _, permission := range unrecorded[role] {
			if !slices.Contains(granted, permission) {
				t.Errorf("%s may not %s", role, permission)
			}
		}
		if role == "schedule" && len(granted) != len(unrecorded[role]) {
			t.Errorf("the schedule may %v", granted)
		}
	}
}

func TestPolicies_WildcardsHaveAReason(t *testing.T) {
	t.Parallel()
	listed := []string{"dynamodb:ListStreams *"} // AWS offers it for everything only
	template := evaluate(t, withFIFO)
	roles := 0
	for name, resource := range template.Resources {
		if resource.Type != "AWS::IAM::Role" {
			continue
		}
		roles++
		for _, permission := range allowed(t, template, name) {
			if strings.Contains(permission, "*") && !slices.Contains(listed, permission) {
				t.Errorf("%s may %s", name, permission)
			}
		}
		if resource.Properties["ManagedPolicyArns"] != nil {
			t.Errorf("%s has a managed policy", name)
		}
	}
	if roles != 4 {
		t.Errorf("%d roles", roles)
	}
	used := map[string]string{}
	for name, resource := range template.Resources {
		if resource.Type != "AWS::Serverless::Function" {
			continue
		}
		role := textAt(resource.Properties, "Role")
		if role != "${"+name+"Role.Arn}" || used[role] != "" || resource.Properties["Policies"] != nil {
			t.Errorf("function %s has the role %s, and policies %v", name, role, resource.Properties["Policies"])
		}
		used[role] = name
	}
}

// liveThroughEverything leads each function through all that it can meet. A call that comes late on a slow machine is waited for: what
// was not seen when it ends never comes.
func (s *stack) liveThroughEverything(t *testing.T, granted map[string][]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	now, outside := s.open(t, 0, nil), s.open(t, 0, s.outside)
	trigger := func(rt *core.Runtime, call runlane.Call, options *runlane.TriggerOptions) runlane.RunID {
		t.Helper()
		result, err := rt.Trigger(ctx, call, options)
		if err != nil {
			t.Fatal(err)
		}
		return result.Run.ID
	}
	var ids []runlane.RunID
	for _, do := range []string{"", "fail", "permanent", "release", "bulk", "note", "follow"} {
		ids = append(ids, trigger(outside, act.With(order{Do: do}), nil))
	}
	for _, do := range []string{"", "", "", "bulk"} { // the first three share the queue's one slot
		ids = append(ids, trigger(outside, one.With(order{Do: do, Bulk: noise(12 << 10)}), &runlane.TriggerOptions{ConcurrencyKey: "key" + do}))
	}
	for _, call := range []runlane.Call{act.With(order{}), one.With(order{})} {
		ids = append(ids, trigger(outside, call, &runlane.TriggerOptions{Deferred: true, ConcurrencyKey: "free"}), trigger(outside, call, keys("mine")))
	}
	ids = append(ids, trigger(outside, act.With(order{}), &runlane.TriggerOptions{Delay: time.Second}))
	for _, queue := range []runlane.Queue{{}, bounded} {
		trigger(outside, alien.With(order{}), &runlane.TriggerOptions{Queue: queue, ConcurrencyKey: "alien"}) // handed back again and again
	}
	stop := s.feed(t) // not before now: runs of one key have to wait for each other
	for _, id := range ids {
		if _, err := now.Wait(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	for len(s.notSeen(t, granted, "bridge"))+len(s.notSeen(t, granted, "relay")) > 0 && pause(ctx) {
	}
	stop()

	// What only a tick finds: it happened twenty minutes ago.
	past := s.open(t, 20*time.Minute, nil)
	trigger(past, act.With(order{}), &runlane.TriggerOptions{Deferred: true}) // never published
	trigger(past, act.With(order{}), nil)                                     // published, and the wakeup lost
	for range 3 {
		trigger(past, one.With(order{}), nil) // waits for a slot, or holds a reservation that has ended
	}
	trigger(past, one.With(order{}), &runlane.TriggerOptions{Delay: 10 * time.Minute})
	trigger(outside, act.With(order{}), &runlane.TriggerOptions{Delay: 16 * time.Minute})
	s.abandon(ctx, t, past, act)
	for _, task := range []*runlane.Task[order]{act, one} {
		if _, err := past.Runs().Cancel(ctx, s.abandon(ctx, t, past, task), nil); err != nil {
			t.Fatal(err)
		}
	}
	for n := 0; n < 3 || len(s.notSeen(t, granted, "tick")) > 0 && pause(ctx); n++ {
		s.tick(t)
	}
}

// pause lets some time pass between two looks, and is false when there is none left.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(100 * time.Millisecond):
		return true
	}
}

// abandon leaves a run behind whose worker died.
func (s *stack) abandon(ctx context.Context, t *testing.T, rt *core.Runtime, task *runlane.Task[order]) runlane.RunID {
	t.Helper()
	id := runlane.RunID(fmt.Sprint("run_abandoned_", time.Now().UnixNano()))
	attempt, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // ends with the test
		defer close(done)
		_, _ = rt.RunNow(attempt, task.With(order{Do: "hang"}), &runlane.TriggerOptions{RunID: id, ConcurrencyKey: string(id)})
	}()
	t.Cleanup(func() {
		end()
		<-done
	})
	for {
		run, err := rt.Runs().Get(ctx, id)
		if err == nil && run.Status == runlane.StatusRunning {
			return id
		}
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
}
