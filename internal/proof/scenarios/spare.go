package scenarios

import (
	"github.com/runlane/runlane-go/internal/proof/fault/lanefault"
)

// sparing exempts scenarios from some kinds of faults, with the reason.
type sparing struct {
	reason    string
	kinds     []lanefault.Kind
	methods   []string // none: the scenarios are left out
	groups    []string // all scenarios of these groups
	scenarios []string
	realTime  bool // only where time is real
}

// failing are the kinds whose caller hears of an error.
func failing() []lanefault.Kind {
	return []lanefault.Kind{lanefault.After, lanefault.Before, lanefault.Conflict, lanefault.Throttle}
}

func anyFault() []lanefault.Kind { return append(failing(), lanefault.Loss, lanefault.Duplicate) }

// spared is the table of all exemptions.
func spared() []sparing {
	return []sparing{
		{
			reason: "a lost wakeup comes again after ten minutes, and here these are real",
			kinds:  []lanefault.Kind{lanefault.Loss}, realTime: true,
			scenarios: []string{
				"a worker takes runs from trigger to success", "a worker that is stopped lets attempts finish",
				"after the grace a worker releases what still executes", "no more runs than the limit execute at once",
				"an outage never fails a trigger and never dead-letters", "a retry gives its place up and comes back in its group",
			},
		},
		{
			reason: "a tick that claimed an occurrence and heard of no end has it for a minute: that is a separate " +
				"scenario",
			kinds: failing(), groups: []string{"Schedules"},
			methods: []string{"AppendRunEvents", "CompleteScheduleOccurrence", "ClaimScheduleOccurrence", "GetRun"},
		},
		{
			reason: "it counts tickets and starts: one whose answer was lost is used up, and runs are late by its interval",
			kinds:  anyFault(),
			scenarios: []string{
				"a tick gives out tickets where no run starts", "a worker holds each key's rate, and is not behind it",
				"beyond two minutes runs wait in line, and each start gives out the next ticket",
				"runs beyond the rate get their wakeups one interval apart",
				"wakeups that come late together start one interval apart",
			},
		},
		{
			reason: "a call to prune that is repeated after a lost answer removes the next run",
			kinds:  anyFault(), methods: []string{"PruneRuns"},
			scenarios: []string{"a retry without its failed run's memory starts nothing"},
		},
		{
			reason: "it counts triggers: one that is repeated after a lost answer counts again",
			kinds:  anyFault(),
			scenarios: []string{
				"a debounced run of a bounded queue waits for its time and then for a slot",
				"no trigger delays a debounced run beyond its latest time",
				"the last of several triggers makes the run, once its window is quiet",
			},
		},
		{
			reason: "its handler takes errors of reading records as they come; a finished step outlives an outage",
			kinds:  failing(), groups: []string{"Steps"},
			methods: []string{"ListRecords", "GetRuns"},
		},
		{
			reason: "its handler takes the error of its wait as it comes, and sleeps on",
			kinds:  failing(), methods: []string{"ReadMail"},
			scenarios: []string{"a resume ends the sleep beside a wait with a shorter limit"},
		},
		{
			reason: "a checkpoint that meets an outage is written with the next one",
			kinds:  failing(), methods: []string{"KeepRecord"},
			scenarios: []string{
				"a checkpoint is what the next attempt goes on from", "a step within a step is refused",
				"bad names, results and too many steps are refused before anything is written",
				"of two workers the one that records first decides for both",
			},
		},
		{
			reason: "its handlers take the errors of waits as they come, and who sends a signal repeats it with " +
				"its id",
			kinds: failing(), groups: []string{"Signals", "Calls", "Memory"},
			methods: []string{
				"AppendRunEvents", "GetRun", "GetRuns", "KeepRecord", "ListRecords", "ReadMail", "SendSignal",
				"ClaimRunLease", "BeginCall", "ReadCalls", "NotifyEnd",
			},
		},
		{
			reason: "its client takes errors as they come: that one which repeats its calls loses nothing is shown " +
				"by make demo-polyglot",
			kinds: failing(), groups: []string{"Clients"},
			methods: []string{
				"AppendRunEvents", "ClaimRunLease", "GetRun", "GetRuns", "KeepRecord", "ListRecords", "ReadMail",
				"SendSignal", "ListRunnableRuns", "PublishWakeups", "HeartbeatRunLease",
			},
		},
		{
			reason: "a lost wakeup comes again after ten minutes, and its client asks for thirty seconds",
			kinds:  []lanefault.Kind{lanefault.Loss}, groups: []string{"Clients"}, methods: []string{"PublishWakeups"},
		},
		{
			reason: "an end that was not told at once is told by a tick, which is a separate scenario, and a call " +
				"that failed is repeated",
			kinds: failing(), groups: []string{"Flows"},
			methods: []string{
				"AppendRunEvents", "GetRun", "GetRuns", "ReadCalls", "NotifyEnd", "ClaimRunLease", "PutFlow", "GetFlow",
				"ListFlows", "ListRunsToNotify", "KeepRecord", "ListRecords", "ReadMail", "SendSignal",
			},
		},
		{
			reason: "its point is the one wakeup that is sent at once, and that it is not sent again",
			kinds:  anyFault(), methods: []string{"AppendRunEvents", "PublishWakeups", "MarkOutboxMessagesPublished"},
			scenarios: []string{"a trigger publishes its wakeup at once and acknowledges it"},
		},
		{
			reason: "a slot is given back, and handed over, best effort: time frees it, and the tick hands it over; its " +
				"explanation is of a run whose wakeup was sent",
			kinds: failing(),
			methods: []string{
				"ReleaseRunDispatch", "ReserveRunDispatch", "ListRunsNeedingDispatch", "AppendRunEvents", "GetRun", "GetRuns",
				"PublishWakeups", "MarkOutboxMessagesPublished",
			},
			scenarios: []string{"a run that no one executes gives its slot back once it has had its time"},
		},
		{
			reason: "each of its ticks reads many pages, and one of them would always fail: that a stage fails alone " +
				"is a separate scenario",
			kinds: failing(),
			methods: []string{
				"GetRuns",
				"ListRunsNeedingCancellationFinalization",
				"ListRunsNeedingDelivery",
				"ListRunsNeedingRedelivery",
				"ListRunsNeedingDispatch",
			},
			scenarios: []string{"the tick looks behind pages that hold nothing"},
		},
		{
			reason: "its point is a delayed wakeup, which is sent once and best effort: the tick finds the run when " +
				"it is due",
			kinds: anyFault(), methods: []string{"SendWakeups"},
			scenarios: []string{
				"a delayed run waits and sends a delayed wakeup",
				"a run that waits is ignored and its wakeup sent again",
				"the tick sends delayed wakeups ahead of long waits",
				"a failure is retried after its backoff, then succeeds",
				"a release waits without failing",
				"a shutdown burns no attempt",
			},
		},
		{
			reason: "a trigger whose answer is lost sends no delayed wakeup: the tick does",
			kinds:  []lanefault.Kind{lanefault.After}, methods: []string{"AppendRunEvents"},
			scenarios: []string{"a delayed run waits and sends a delayed wakeup"},
		},
		{
			reason: "a trigger whose answer is lost publishes nothing itself, and its own look at the refusal is the " +
				"point",
			kinds: []lanefault.Kind{lanefault.After}, methods: []string{"AppendRunEvents"},
			scenarios: []string{"a refused wakeup never fails a trigger and is published later"},
		},
		{
			reason: "it counts commits, and one without an answer is tried again",
			kinds:  []lanefault.Kind{lanefault.After}, methods: []string{"AppendRunEvents"},
			scenarios: []string{"run now creates, claims and starts in one commit and sends no wakeup"},
		},
		{
			reason: "it explains a run right behind a wakeup that was handed over or a slot that was freed; what a " +
				"fault puts off is explained elsewhere",
			kinds: failing(), methods: []string{
				"AppendRunEvents", "PublishWakeups", "MarkOutboxMessagesPublished", "ListRunsNeedingDispatch",
				"GetRuns", "ReserveRunDispatch",
				"ClaimOutboxMessages", "MarkOutboxMessagesFailed",
			},
			scenarios: []string{
				"a reserved slot is explained by its end",
				"a wakeup that is not handed over is explained with its failure",
				"a full queue is explained by who holds its slots",
				"a queue that this runtime does not know is named",
				"a given-up wakeup of a bounded run goes back to waiting for a slot",
				"a given-up wakeup is explained by its failure",
				"a resumed run of a bounded queue waits for a slot",
			},
		},
		{
			reason: "it counts tries, polls or ticks, and a caller that failed tries, polls or ticks again",
			kinds:  failing(), scenarios: []string{
				"a cancellation that loses a race looks again",
				"an idle worker that polls asks less and less",
				"a worker ticks at the start and every minute",
				"a batch stops when the storage cannot be reached and says what was done",
				"the tick sends delayed wakeups ahead of long waits",
				"a tick that dies with an occurrence is followed by one that makes the same run",
				"a run triggered by hand after the occurrence's own is not before it",
			},
		},
		{
			reason: "a refused row is looked at once more when its time or its claim is over; it counts these looks",
			kinds:  failing(), methods: []string{"ClaimOutboxMessages", "MarkOutboxMessagesFailed", "AppendRunEvents"},
			scenarios: []string{
				"a message refused ten times is dead-lettered",
				"an outage never fails a trigger and never dead-letters",
			},
		},
		{
			reason: "a tick that is repeated is another look, and the point is where the last look was",
			kinds:  failing(), scenarios: []string{"a changed definition applies from the opening of its program on"},
		},
		{
			reason: "its handler takes the errors of the calls that it makes as they come",
			kinds:  failing(), methods: []string{"AppendRunEvents", "GetRun"},
			scenarios: []string{
				"an attempt triggers with lineage and never waits for itself",
				"a drain executes everything that is due and returns",
			},
		},
		{
			reason: "it counts by stage, and what one stage could not do the next one does",
			kinds:  failing(), methods: []string{"GetRuns", "AppendRunEvents"},
			scenarios: []string{"the tick fails a run that was abandoned too often"},
		},
		{
			reason: "a tick that is repeated asks again for the run whose row the first one has published",
			kinds:  failing(), scenarios: []string{
				"the tick publishes the row of a scheduled run and appends nothing",
				"a wakeup that was handed over is explained by its redelivery",
			},
		},
		{
			reason:    "it counts the rows that a relay publishes",
			kinds:     failing(),
			methods:   []string{"ClaimOutboxMessages", "PublishWakeups", "MarkOutboxMessagesPublished"},
			scenarios: []string{"the relay publishes deferred rows, just those it is given"},
		},
		{
			reason: "a claim without an answer is settled by a read: its point is that, and not that the read fails " +
				"too",
			kinds: failing(), methods: []string{"GetRun"}, scenarios: []string{
				"a storage that cannot be reached hands the wakeup back",
				"a claim whose answer was lost is told of a cancellation",
				"run now whose answer was lost is told of a cancellation",
			},
		},
		{
			reason: "a run that was failed without an answer is found terminal by the next wakeup",
			kinds:  []lanefault.Kind{lanefault.After}, methods: []string{"AppendRunEvents"},
			scenarios: []string{
				"a run abandoned too often fails instead of being claimed",
				"only attempts that were abandoned in a row count",
			},
		},
		{
			reason:    "its transport is out by itself, in words that a throttle has too",
			kinds:     []lanefault.Kind{lanefault.Throttle},
			scenarios: []string{"an outage never fails a trigger and never dead-letters"},
		},
		{
			reason: "its transport refuses by itself, and it counts the rows that a tick publishes beside that",
			kinds:  failing(), scenarios: []string{"rows of a queue that takes nothing hide no other queue's"},
		},
		{
			reason: "it counts attempts, and one whose claim and the look that settles it are both without an answer " +
				"is never executed",
			kinds: failing(), methods: []string{"GetRun"}, scenarios: []string{
				"a worker takes runs from trigger to success",
				"the next run is the one that is due first, and only one is executed",
			},
		},
		{
			reason: "it counts attempts, and a run that was released at once is any wakeup's to execute",
			kinds:  []lanefault.Kind{lanefault.Duplicate}, methods: []string{"PublishWakeups"},
			scenarios: []string{"after the grace a worker releases what still executes"},
		},
		{
			reason:    "it counts looks and claims",
			kinds:     failing(),
			methods:   []string{"GetRun"},
			scenarios: []string{"a claim that is lost again and again is ignored"},
		},
		{
			reason: "it counts heartbeats and measures their distance",
			kinds:  failing(), methods: []string{"HeartbeatRunLease"},
			scenarios: []string{"heartbeats keep a long run"},
		},
		{
			reason: "it counts the requests that publish a batch",
			kinds:  failing(), methods: []string{"AppendRunEvents"},
			scenarios: []string{"a batch makes every run and publishes the wakeups together"},
		},
		{
			reason: "its point is how much one tick does, and a tick that failed in part is repeated",
			kinds:  failing(), scenarios: []string{"a tick is bounded and says when there is more"},
		},
		{
			reason: "what a bulk call could not do is in its result, and another call does it",
			kinds:  failing(), methods: []string{"AppendRunEvents", "GetRun", "PruneRuns", "InspectRun"},
			scenarios: []string{
				"a bulk cancellation counts, caps and resumes",
				"a bulk cancellation skips what moved on and keeps what failed",
				"a bulk resumption counts first, and skips what goes on",
				"bulk reruns and retries make nothing twice",
				"a bulk call that is stopped says where to resume",
				"given-up wakeups are requeued by filter",
				"pruning counts first, keeps what retains a key, and removes",
				"pruning resumes with the cutoff it began with",
			},
		},
		{
			reason: "a wakeup that was not sent by its trigger, or could not be marked as given up, is refused once " +
				"more when its claim is over",
			kinds: failing(), methods: []string{"MarkOutboxMessagesDeadLettered", "AppendRunEvents"},
			scenarios: []string{
				"a given-up wakeup is explained by its failure",
				"a given-up wakeup is listed and requeued by the operator",
				"a given-up wakeup of a bounded run goes back to waiting for a slot",
				"given-up wakeups are requeued by filter",
				"a message refused ten times is dead-lettered",
				"a message that can never be accepted is dead-lettered at once",
			},
		},
	}
}
