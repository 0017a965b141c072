package waits

import "github.com/runlane/runlane-go/spec/explore"

// The rules of the protocol: signals and waits, records, children, flows.
const (
	signalOnce = iota
	signalCount
	oneTransaction
	resumeSequence
	notWaiting
	signalActive
	inboxOfWait
	inboxOnce
	waitEnds
	lookCounter
	callCheck
	endsCheck
	unionOfAll
	anythingElse
	namesLowered
	verdictOnce
	momentOnce
	stepFirst
	adoptWinner
	stepOfLife
	boundedDue
	releaseFrees
	endMarker
	listenCondition
	listenEnded
	toldOnce
	tellCount
	lastChecks
	tellGone
	callFenced
	childChecks
	cascadeMarker
	pruneTold
	pruneChild
	sinksFirst
	flowMarker
	closesIncomplete
	flowOpen
	closeTends
	sameCancel
	undoSpared
	secondCancel
	sweepJudges
	missingEnded
	lookExact
	judgedAll
	judgeSequence
	unmetCancelled
	undoOfBegun
	undoOwed
	markLast
	finishedAll
	headVersion
	retryEnded
	unmetStays
	latestRun
	leaseToken
	ruleCount
)

// flowRules are those of flows alone.
const flowRules = explore.Rules(1<<leaseToken - 1<<sinksFirst)

// ruleTexts say what each rule is.
var ruleTexts = [ruleCount]explore.Rule{
	signalOnce:     {Name: "signalOnce", Says: "a signal is put if absent, and counted only then"},
	signalCount:    {Name: "signalCount", Says: "a signal depends on the run's count of signals as read"},
	oneTransaction: {Name: "oneTransaction", Says: "a signal and the resumption that it causes are one transaction"},
	resumeSequence: {Name: "resumeSequence", Says: "a resumption is a commit on the sequence read"},
	notWaiting: {
		Name: "notWaiting",
		Says: "a signal that resumes no run depends on no wait in force, or on the one read",
	},
	signalActive: {Name: "signalActive", Says: "a signal depends on the run being active"},
	inboxOfWait:  {Name: "inboxOfWait", Says: "the name of a wait is the name of its inbox"},
	inboxOnce:    {Name: "inboxOnce", Says: "a wait for a signal that another wait of the run is for is refused"},
	waitEnds:     {Name: "waitEnds", Says: "every later event ends a wait"},
	lookCounter:  {Name: "lookCounter", Says: "a suspension depends on the count of signals as looked at"},
	callCheck:    {Name: "callCheck", Says: "a suspension depends on the count of ended children as looked at"},
	endsCheck:    {Name: "endsCheck", Says: "a suspension depends on the count of told ends as looked at"},
	unionOfAll: {
		Name: "unionOfAll",
		Says: "a suspension carries all that the attempt's calls wait for; any of it resumes",
	},
	anythingElse: {Name: "anythingElse", Says: "what the run item has no room for is waited for as anything"},
	namesLowered: {
		Name: "namesLowered",
		Says: "a wait for all stores the names that are missing; a signal takes its own off",
	},
	verdictOnce: {
		Name: "verdictOnce",
		Says: "the outcome of a wait is recorded, first wins, before the handler hears it",
	},
	momentOnce: {
		Name: "momentOnce",
		Says: "the moment of a sleep or a time limit is recorded when it is first asked for",
	},
	stepFirst:    {Name: "stepFirst", Says: "a step is put if absent"},
	adoptWinner:  {Name: "adoptWinner", Says: "who loses the put of a step answers with what stands"},
	stepOfLife:   {Name: "stepOfLife", Says: "a step's key names the creation of its run"},
	boundedDue:   {Name: "boundedDue", Says: "a resumed run of a bounded queue is due for a slot"},
	releaseFrees: {Name: "releaseFrees", Says: "a suspension gives the slot up"},
	endMarker:    {Name: "endMarker", Says: "the end of a run with addressees leaves marker e"},
	listenCondition: {
		Name: "listenCondition",
		Says: "a terminal commit depends on the listeners as known, a registration on the run being active",
	},
	listenEnded: {Name: "listenEnded", Says: "who finds the run ended when registering has its answer"},
	toldOnce:    {Name: "toldOnce", Says: "telling depends on marker e and removes it"},
	tellCount:   {Name: "tellCount", Says: "telling depends on the addressee's count as read"},
	lastChecks: {
		Name: "lastChecks",
		Says: "the last end depends on its addressee not waiting where it saw it not wait",
	},
	tellGone: {Name: "tellGone", Says: "an end whose addressee has ended or is gone counts as told"},
	callFenced: {
		Name: "callFenced",
		Says: "a call is recorded with the run item, under the lease token, before its first child",
	},
	childChecks: {Name: "childChecks", Says: "the claim of a child depends on its parent not being cancelled"},
	cascadeMarker: {
		Name: "cascadeMarker",
		Says: "the cancellation of a run with a call leaves marker e until each child is asked",
	},
	pruneTold:  {Name: "pruneTold", Says: "a run with marker e is not pruned"},
	pruneChild: {Name: "pruneChild", Says: "a child is not pruned while its parent is active"},
	sinksFirst: {Name: "sinksFirst", Says: "nodes are made dependents first"},
	flowMarker: {Name: "flowMarker", Says: "a flow is tended until it is complete"},
	closesIncomplete: {
		Name: "closesIncomplete",
		Says: "a tick closes what it saw incomplete only while it is to be tended",
	},
	flowOpen:     {Name: "flowOpen", Says: "the creation of a node depends on its flow: not closed, in this round"},
	closeTends:   {Name: "closeTends", Says: "a closed flow is tended until every node was asked"},
	sameCancel:   {Name: "sameCancel", Says: "a cancellation of a flow that is being asked is the same one"},
	undoSpared:   {Name: "undoSpared", Says: "the first cancellation of a flow asks ordinary nodes alone"},
	secondCancel: {Name: "secondCancel", Says: "the second cancellation asks every node"},
	sweepJudges: {
		Name: "sweepJudges",
		Says: "who closes a flow judges the nodes that are spared: what was never made tells no one",
	},
	missingEnded:  {Name: "missingEnded", Says: "what a closed flow misses has ended"},
	lookExact:     {Name: "lookExact", Says: "the look at the ends before a node sees what is committed"},
	judgedAll:     {Name: "judgedAll", Says: "a node is judged once all that it goes after have ended"},
	judgeSequence: {Name: "judgeSequence", Says: "a judgement is a commit on the node's sequence as read"},
	unmetCancelled: {
		Name: "unmetCancelled",
		Says: "a node whose condition is not met is cancelled by who judges it",
	},
	undoOfBegun: {Name: "undoOfBegun", Says: "only an end of what had begun asks for undoing"},
	undoOwed: {
		Name: "undoOwed",
		Says: "a retry of a flow remembers what had begun and was not undone",
	},
	markLast: {
		Name: "markLast",
		Says: "the mark of a node's end is removed once its dependents were judged and the flow was looked at",
	},
	finishedAll: {Name: "finishedAll", Says: "a flow has finished when each of its runs has ended"},
	headVersion: {Name: "headVersion", Says: "a change of a flow depends on its record as read"},
	retryEnded:  {Name: "retryEnded", Says: "a flow is retried once it has finished"},
	unmetStays: {
		Name: "unmetStays",
		Says: "a retry leaves a node alone whose condition the ends that stay do not meet",
	},
	latestRun:  {Name: "latestRun", Says: "a node is resolved to its latest run when the signal is sent"},
	leaseToken: {Name: "leaseToken", Says: "outcomes and calls depend on the lease token"},
}

// holds reports a rule that is in force.
func (w *world) holds(rule int) bool { return !w.removed.Lacks(rule) }
