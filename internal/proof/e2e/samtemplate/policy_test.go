package samtemplate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/lane"
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
	var all []string
	for _, policy := range listAt(template.Resources[role].Properties, "Policies") {
		all = append(all, statements(t, role, at(policy, "PolicyDocument"))...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// statements lists what a policy document allows.
func statements(t *testing.T, name string, document any) []string {
	t.Helper()
	found := map[string]bool{}
	for _, statement := range listAt(document, "Statement") {
		for _, key := range slices.Sorted(maps.Keys(statement.(map[string]any))) {
			if !slices.Contains([]string{"Effect", "Action", "Resource"}, key) {
				t.Errorf("%s has a statement with %s", name, key)
			}
		}
		if textAt(statement, "Effect") != "Allow" {
			t.Errorf("%s has a statement that does not allow", name)
		}
		for _, action := range oneOrMany(at(statement, "Action")) {
			for _, resource := range oneOrMany(at(statement, "Resource")) {
				found[action+" "+resource] = true
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
	s.operate(t)
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
	"DeleteItem":         "what Options.Keep no longer keeps, which no recording is old enough for, and operators",
	"Scan":               "the invariant checker: operators and tests",
	"ReceiveMessage":     "long-lived workers",
	"DeleteMessageBatch": "long-lived workers",
}

// checkOutside compares the policies of programs outside with what such programs were seen to call.
func (s *stack) checkOutside(t *testing.T) {
	t.Helper()
	template := evaluate(t, withFIFO)
	for output, r := range map[string]*recorder{"TriggerPolicy": s.outside, "OperatorPolicy": s.operator, "ReadPolicy": s.reader} {
		needed, granted := r.permissions(t), granted(t, template, output)
		for _, permission := range needed {
			if !slices.Contains(granted, permission) {
				t.Errorf("a program calls %s, which %s does not allow", permission, output)
			}
		}
		for _, permission := range granted {
			fifo := strings.HasSuffix(permission, " ${FifoWorkQueue.Arn}") // as the other queue
			if !fifo && !slices.Contains(needed, permission) && !slices.Contains(rare[output], permission) {
				t.Errorf("%s allows %s, which no program was seen to do", output, permission)
			}
		}
	}
}

// rare are actions of programs outside that no recording meets for certain.
var rare = map[string][]string{
	// A trigger that reserved a slot and lost it, or has one too many, hands it over to the run that waits longest.
	"TriggerPolicy": {
		"dynamodb:BatchGetItem ${Table.Arn}", "dynamodb:ConditionCheckItem ${Table.Arn}", "dynamodb:DeleteItem ${Table.Arn}",
		"dynamodb:Query ${Table.Arn}/index/due",
	},
	// So does a cancellation.
	"OperatorPolicy": {"dynamodb:ConditionCheckItem ${Table.Arn}"},
}

// granted lists what a policy document among the outputs allows, as "action resource".
func granted(t *testing.T, template *Template, output string) []string {
	t.Helper()
	text, _ := template.Outputs[output].Value.(string)
	var document any
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatalf("%s is no JSON: %v", output, err)
	}
	return statements(t, output, document)
}

// Each policy is within the next: who looks may not change, who triggers may not scan, and no index is more than queried.
func TestPolicies_OfProgramsOutside_AreWithinEachOther(t *testing.T) {
	t.Parallel()
	for _, parameters := range []map[string]string{withFIFO, withExistingTable} {
		template := evaluate(t, parameters)
		trigger, operator, read := granted(t, template, "TriggerPolicy"), granted(t, template, "OperatorPolicy"), granted(t, template, "ReadPolicy")
		for _, permission := range append(slices.Clone(trigger), read...) {
			if !slices.Contains(operator, permission) {
				t.Errorf("an operator may not %s", permission)
			}
		}
		for _, permission := range read {
			if regexp.MustCompile(`:(Put|Update|Delete|Send|ConditionCheck)`).MatchString(permission) {
				t.Errorf("who looks may %s", permission)
			}
		}
		for _, permission := range operator {
			if strings.Contains(permission, "*") || strings.Contains(permission, "/index/") && !strings.HasPrefix(permission, "dynamodb:Query ") {
				t.Errorf("an operator may %s", permission)
			}
		}
		if slices.ContainsFunc(trigger, func(p string) bool {
			return strings.HasPrefix(p, "dynamodb:Scan") || strings.HasSuffix(p, "/index/done")
		}) {
			t.Errorf("who triggers may %q", trigger)
		}
		if !slices.ContainsFunc(trigger, func(p string) bool { return strings.HasPrefix(p, "dynamodb:DeleteItem ") }) {
			t.Error("who triggers may not hand a slot over")
		}
	}
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
	template := evaluate(t, withEverything)
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
		if resource.Properties["ManagedPolicyArns"] != nil && name != "DeploymentRole" { // CodeDeploy's own is AWS's to keep
			t.Errorf("%s has a managed policy", name)
		}
	}
	if roles != 7 {
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
	ids = append(ids, s.startWaits(ctx, t, outside)...)
	stop := s.feed(t) // not before now: runs of one key have to wait for each other
	for _, id := range ids {
		if _, err := now.Wait(ctx, id); err != nil {
			explanation, _ := now.Runs().Explain(t.Context(), id)
			t.Fatalf("%s: %v: %+v", id, err, explanation)
		}
	}
	for len(s.notSeen(t, granted, "bridge"))+len(s.notSeen(t, granted, "relay")) > 0 && pause(ctx) {
	}
	stop()
	if ctx.Err() != nil {
		t.Fatalf("the bridge was not seen to call %v, the relay %v",
			s.notSeen(t, granted, "bridge"), s.notSeen(t, granted, "relay"))
	}

	// What only a tick finds: it happened twenty minutes ago.
	past := s.open(t, 20*time.Minute, nil)
	trigger(past, act.With(order{}), &runlane.TriggerOptions{Deferred: true}) // never published
	trigger(past, act.With(order{}), nil)                                     // published, and the wakeup lost
	for range 3 {
		trigger(past, one.With(order{}), nil) // waits for a slot, or holds a reservation that has ended
	}
	trigger(past, one.With(order{}), &runlane.TriggerOptions{Delay: 10 * time.Minute})
	trigger(outside, act.With(order{}), &runlane.TriggerOptions{Delay: 16 * time.Minute})
	s.abandon(ctx, t, past, act.With(order{Do: "hang"}))
	s.leaveUntold(ctx, t, past)
	elsewhere := s.open(t, 20*time.Minute, nil) // the runtime that executes a run would tell its handler, and leave nothing to the tick
	for _, task := range []*runlane.Task[order]{act, one} {
		if _, err := elsewhere.Runs().Cancel(ctx, s.abandon(ctx, t, past, task.With(order{Do: "hang"})), nil); err != nil {
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
func (s *stack) abandon(ctx context.Context, t *testing.T, rt *core.Runtime, call runlane.Call) runlane.RunID {
	t.Helper()
	id := runlane.RunID(fmt.Sprint("run_abandoned_", time.Now().UnixNano()))
	attempt, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // ends with the test
		defer close(done)
		options := &runlane.TriggerOptions{RunID: id, ConcurrencyKey: string(id), Deferred: true}
		made, err := rt.Trigger(attempt, call, options)
		if err == nil { // as by its wakeup: an ordered queue has no other way
			_, _ = rt.ExecuteDelivery(attempt, lane.Wakeup{
				RunKey: lane.RunKey{Environment: made.Run.Environment, RunID: id},
				Queue:  made.Run.Queue,
			}, nil)
		}
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

// operate calls everything that operators and readers call, each through its recorder, when the functions are done.
func (s *stack) operate(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	for _, by := range []*recorder{s.reader, s.operator} {
		rt := s.open(t, 0, by)
		look := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		page, err := rt.Runs().List(ctx, &core.ListOptions{})
		look("list", err)
		_, err = rt.Runs().List(ctx, &core.ListOptions{RunFilter: core.RunFilter{Statuses: []runlane.Status{runlane.StatusSucceeded}}})
		look("list finished", err)
		id := page.Items[0].ID
		_, err = rt.Runs().Get(ctx, id)
		look("get", err)
		_, err = rt.Runs().Explain(ctx, id)
		look("explain", err)
		_, err = rt.Runs().Attempts(ctx, id)
		look("attempts", err)
		_, err = rt.Runs().FindCurrent(ctx, "act", "mine")
		look("find", err)
		_, err = rt.Queues().Stats(ctx, bounded.Name)
		look("stats", err)
		_, err = rt.DeadLetters().List(ctx, nil)
		look("dead letters", err)
		for _, err := range rt.Schedules().List(ctx) {
			look("schedules", err)
		}
		_, err = rt.Lane().Storage.Check(ctx, &lane.PageQuery{Environment: rt.Environment()})
		look("check", err)
		for _, err := range rt.Flows().All(ctx, nil) {
			look("flows", err)
		}
		_, err = rt.Runs().Tree(ctx, s.waits, nil)
		look("tree", err)
		_, err = rt.Runs().Steps(ctx, s.waits)
		look("steps", err)
		if by == s.reader {
			continue
		}
		s.operateWaits(t, rt, look)
		all := &core.BulkOptions{AllRuns: true}
		result, err := rt.Trigger(ctx, act.With(order{}), &runlane.TriggerOptions{Delay: time.Hour, IdempotencyKey: "operator"})
		look("trigger", err)
		_, err = rt.Runs().Cancel(ctx, result.Run.ID, nil)
		look("cancel", err)
		look("reset", rt.IdempotencyKeys().Reset(ctx, "act", "operator"))
		_, err = rt.Runs().Rerun(ctx, result.Run.ID, nil)
		look("rerun", err)
		_, err = rt.Runs().RetryAll(ctx, all)
		look("retry", err)
		_, err = rt.DeadLetters().RequeueAll(ctx, all)
		look("requeue", err)
		_, err = rt.Tick(ctx, nil)
		look("tick", err)
		_, err = rt.Runs().CancelAll(ctx, all)
		look("cancel all", err)
		_, err = rt.Runs().Prune(ctx, &core.PruneOptions{OlderThan: time.Nanosecond, ReleaseOwners: true})
		look("prune", err)
	}
}

// Who may do what with bodies in the bucket; without the parameter nobody may do anything with any bucket.
func TestPolicies_Bodies(t *testing.T) {
	t.Parallel()
	const objects, bucket = " arn:${AWS::Partition}:s3:::bodies/runlane/*", "s3:ListBucket arn:${AWS::Partition}:s3:::bodies"
	both := []string{"s3:GetObject" + objects, bucket, "s3:PutObject" + objects}
	all := append([]string{"s3:DeleteObject" + objects}, both...)
	for bucketName, want := range map[string]map[string][]string{
		"": {},
		"bodies": {
			"BridgeRole": both, "TickRole": all, "ServerRole": all,
			"TriggerPolicy": both, "OperatorPolicy": all, "ReadPolicy": both[:2],
		},
	} {
		template := evaluate(t, map[string]string{"BodiesBucket": bucketName, "ServerScopes": "read,operate"})
		of := map[string][]string{}
		for _, role := range []string{"BridgeRole", "RelayRole", "TickRole", "ServerRole"} {
			of[role] = allowed(t, template, role)
		}
		for _, output := range []string{"TriggerPolicy", "OperatorPolicy", "ReadPolicy"} {
			of[output] = granted(t, template, output)
		}
		for name, permissions := range of {
			permissions = slices.DeleteFunc(permissions, func(p string) bool { return !strings.HasPrefix(p, "s3:") })
			slices.Sort(permissions)
			if !slices.Equal(permissions, want[name]) {
				t.Errorf("with the bucket %q, %s may %q, want %q", bucketName, name, permissions, want[name])
			}
		}
	}
}
