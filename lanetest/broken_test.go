package lanetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/patience"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A conformance suite is worth what it catches. Each of these storages is right but for one thing, and the case beside it must
// fail. They are run by a second process of this test, whose failures are then its success.

// sound is what the broken ones are made of.
type sound struct{ *memlane.Storage }

func (s sound) Unwrap() lane.Storage { return s.Storage }

type renumbers struct{ sound }

func (s renumbers) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	commit, err := s.sound.AppendRunEvents(ctx, c)
	if err == nil && len(commit.Events) > 0 {
		commit.Events[0].ID = "another"
	}
	return commit, err
}

type compacts struct{ sound }

func (s compacts) GetRun(ctx context.Context, key lane.RunKey) (*runlane.Run, error) {
	run, err := s.sound.GetRun(ctx, key)
	if err == nil {
		var compact bytes.Buffer
		if json.Compact(&compact, run.Payload) == nil {
			run.Payload = compact.Bytes()
		}
	}
	return run, err
}

type aliases struct{ sound }

func (s aliases) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	commit, err := s.sound.AppendRunEvents(ctx, c)
	if err == nil {
		commit.Run = c.Projected
	}
	return commit, err
}

type losesWithErrors struct{ sound }

func (s losesWithErrors) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	got, err := s.sound.ClaimRunLease(ctx, c)
	if err == nil && got.Outcome != lane.Acquired {
		return nil, runlane.NewConflict(runlane.ConflictEventSequence, "lost")
	}
	return got, err
}

type claimsEarly struct{ sound }

func (s claimsEarly) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	early := *c
	early.At = c.At.Add(time.Millisecond)
	return s.sound.ClaimRunLease(ctx, &early)
}

type ignoresTokens struct{ sound }

func (s ignoresTokens) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	unfenced := *c
	unfenced.LeaseToken = ""
	return s.sound.AppendRunEvents(ctx, &unfenced)
}

type widens struct{ sound }

func (s widens) ClaimOutboxMessages(ctx context.Context, c *lane.ClaimOutboxCommand) ([]lane.OutboxMessage, error) {
	wide := *c
	wide.IDs = nil
	return s.sound.ClaimOutboxMessages(ctx, &wide)
}

type marksAllOrNothing struct{ sound }

func (s marksAllOrNothing) MarkOutboxMessagesPublished(ctx context.Context, c *lane.MarkPublishedCommand) error {
	for _, m := range c.Messages {
		if m.ClaimToken == "another's" {
			err := runlane.NewConflict(runlane.ConflictOutboxClaim, "one is stale")
			err.Meta = map[string]string{"outbox_ids": m.ID}
			return err
		}
	}
	return s.sound.MarkOutboxMessagesPublished(ctx, c)
}

type scansLate struct{ sound }

func (s scansLate) ListRunnableRuns(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	late := *q
	late.At = q.At.Add(-time.Millisecond)
	return s.sound.ListRunnableRuns(ctx, &late)
}

type leavesNoQueueOut struct{ sound }

func (s leavesNoQueueOut) ListRunnableRuns(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	all := *q
	all.Without = nil
	return s.sound.ListRunnableRuns(ctx, &all)
}

type stopsAtAFullPage struct{ sound }

func (s stopsAtAFullPage) ListRunsNeedingDelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	page, err := s.sound.ListRunsNeedingDelivery(ctx, q)
	if err == nil {
		page.Next = ""
	}
	return page, err
}

type forgetsOwnersAfterTheEnd struct{ sound }

func (s forgetsOwnersAfterTheEnd) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	run, err := s.sound.GetRunByIdempotencyKey(ctx, key)
	if err == nil && run.Status.Terminal() {
		return nil, &runlane.Error{Code: runlane.ErrRunNotFound, Message: "gone"}
	}
	return run, err
}

type outlivesContexts struct{ sound }

func (s outlivesContexts) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	return s.sound.AppendRunEvents(context.WithoutCancel(ctx), c)
}

type doesNothingSilently struct{ sound }

func (s doesNothingSilently) Capabilities() lane.StorageCapabilities {
	c := s.sound.Capabilities()
	c.PrunesRuns = false
	return c
}

func (doesNothingSilently) PruneRuns(context.Context, *lane.PruneCommand) (*lane.PruneProgress, error) {
	return &lane.PruneProgress{}, nil
}

type redeliversAlways struct{ sound }

func (s redeliversAlways) ListRunsNeedingRedelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.sound.ListRunnableRuns(ctx, q)
}

// findsFault has a checker that is never content: every case must ask it.
type findsFault struct{ sound }

func (findsFault) Check(context.Context, *lane.PageQuery) (*runlane.Page[lane.Violation], error) {
	return &runlane.Page[lane.Violation]{Items: []lane.Violation{{Rule: "contentment"}}}, nil
}

// rewrites stores what it was given and tells something else: only the fold of the history shows it.
type rewrites struct{ sound }

func (s rewrites) ListRunEvents(ctx context.Context, q *lane.EventQuery) (*runlane.Page[runlane.EventRecord], error) {
	page, err := s.sound.ListRunEvents(ctx, q)
	if err == nil {
		for i := range page.Items {
			if created, ok := page.Items[i].Body.(*runlane.RunCreated); ok {
				created.Queue = "rewritten"
			}
		}
	}
	return page, err
}

var broken = map[string]struct {
	storage func(sound) lane.Storage
	fails   string // group/case
}{
	"renumbers":         {func(s sound) lane.Storage { return renumbers{s} }, "Append/ReturnedEventsAreExactlyThoseListedLater"},
	"compacts":          {func(s sound) lane.Storage { return compacts{s} }, "Bytes/PayloadsComeBackIdentical"},
	"aliases":           {func(s sound) lane.Storage { return aliases{s} }, "Copies/ChangingACommandAfterwardsChangesNothing"},
	"losesWithErrors":   {func(s sound) lane.Storage { return losesWithErrors{s} }, "Claim/RaceHasOneWinnerAndLosersGetAnOutcome"},
	"claimsEarly":       {func(s sound) lane.Storage { return claimsEarly{s} }, "Claim/RunIsRunnableFromTheExactMillisecond"},
	"ignoresTokens":     {func(s sound) lane.Storage { return ignoresTokens{s} }, "Lease/Hazard19_LateOwnerIsFencedAfterATakeover"},
	"widens":            {func(s sound) lane.Storage { return widens{s} }, "Outbox/ClaimsByIDNeverWiden"},
	"marksAllOrNothing": {func(s sound) lane.Storage { return marksAllOrNothing{s} }, "Marks/ABatchIsJudgedRowByRow"},
	"scansLate":         {func(s sound) lane.Storage { return scansLate{s} }, "Scans/RunnableFromTheExactMillisecondInDueOrder"},
	"leavesNoQueueOut":  {func(s sound) lane.Storage { return leavesNoQueueOut{s} }, "Scans/QueuesFilter"},
	"stopsAtAFullPage":  {func(s sound) lane.Storage { return stopsAtAFullPage{s} }, "Paging/ScansCoverEverythingExactlyOnce"},
	"forgetsOwnersAfterTheEnd": {
		func(s sound) lane.Storage { return forgetsOwnersAfterTheEnd{s} }, "Owners/IdempotencyIsRetainedAsThePolicyAtCreationSays",
	},
	"outlivesContexts": {
		func(s sound) lane.Storage { return outlivesContexts{s} }, "Capabilities/EndedContextIsOperationCancelledAndWritesNothing",
	},
	"doesNothingSilently": {func(s sound) lane.Storage { return doesNothingSilently{s} }, "Capabilities/MissingOnesAnswerCapabilityUnsupported"},
	"redeliversAlways":    {func(s sound) lane.Storage { return redeliversAlways{s} }, "Redelivery/BeginsTenMinutesAfterThePublication"},
	"mergesDefinitions":   {func(s sound) lane.Storage { return &mergesDefinitions{sound: s} }, "Catalog/APutReplacesAllOfWhatWasThere"},
	"onlyTheLastProgram":  {func(s sound) lane.Storage { return &onlyTheLastProgram{sound: s} }, "Catalog/PutsOfDifferentTasksAtOnceAreAllKept"},
	"notesOfAnybody":      {func(s sound) lane.Storage { return notesOfAnybody{s} }, "Progress/OnlyTheOwnerLeavesNotes"},
	"findsFault":          {func(s sound) lane.Storage { return findsFault{s} }, "Append/WritesRunEventsAndOutboxTogether"},
	"rewrites":            {func(s sound) lane.Storage { return rewrites{s} }, "Reads/GetRunsKeepsOrderAndRepeatsAndOmitsMissing"},
	"countsOneTooMany":    {func(s sound) lane.Storage { return countsOneTooMany{s} }, "Queues/RacingReserversAndClaimersNeverExceedTheLimit"},
	"ignoresReservations": {func(s sound) lane.Storage { return ignoresReservations{s} }, "Queues/AClaimNeedsItsReservationOrASlot"},
	"freesByTime":         {func(s sound) lane.Storage { return freesByTime{s} }, "Queues/ASlotIsNeverFreedByTimeWhileItsRunRuns"},
	"needsRoomForItsOwn":  {func(s sound) lane.Storage { return needsRoomForItsOwn{s} }, "Queues/ARunReusesItsOwnSlotAfterACrash"},
	"offersFullPartitions": {
		func(s sound) lane.Storage { return offersFullPartitions{s} }, "Queues/ABlockedPartitionNeverHidesTheWorkOfAnother",
	},
	"createsAnyway": {func(s sound) lane.Storage { return createsAnyway{s} }, "Queues/ACreationTakesASlotOrWritesNothing"},
	"cancelFails":   {func(s sound) lane.Storage { return cancelFails{s} }, "Queues/Hazard20_CancellingNeverFailsForASlotThatWasTakenOver"},
	"publishesLate": {func(s sound) lane.Storage { return publishesLate{s} }, "Queues/ARowIsDueOnlyWhileItsReservationLives"},
}

const brokenVariable = "LANETEST_BROKEN"

// TestBrokenStorage is the second process. Without its variable it runs the sound storage.
func TestBrokenStorage(t *testing.T) {
	t.Parallel()
	storage := func(testing.TB) lane.Storage {
		s := sound{memlane.NewStorage(nil)}
		if b, ok := broken[os.Getenv(brokenVariable)]; ok {
			return b.storage(s)
		}
		return s
	}
	lanetest.RunStorage(t, lanetest.StorageHarness{
		New: storage, Capabilities: storage(t).Capabilities(), Checker: true, Progress: true, Catalog: true,
	})
}

func TestRunStorage_CatchesEachBrokenStorage(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group, _, _ := strings.Cut(b.fails, "/")
			second := exec.CommandContext(t.Context(), program, "-test.run", "^TestBrokenStorage$/^"+group+"$", "-test.timeout", (2 * patience.Limit).String())
			second.Env = append(os.Environ(), brokenVariable+"="+name)
			out, err := second.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestBrokenStorage/"+b.fails) {
				t.Fatalf("the suite did not fail %s (%v):\n%s", b.fails, err, out)
			}
		})
	}
}
