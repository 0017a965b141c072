package main

// rule is one sentence of the design that can be taken out.
type rule uint8

const (
	sequence rule = iota
	commitMarker
	moveCondition
	moveAfterMark
	markHeldRow
	claimMoves
	terminalRemoves
	supersede
	rowFirst
	liveClaimMoves
	deadLookMoves
	scanReadsKind
	redeliverParked
	unlimitedRedelivers
	recoverToQueued
	dispatchRunning
	abandonAlways
	fence
	slotUnchanged
	lowestFree
	aboveFirst
	expiredIsFree
	reuseOwn
	reuseJudged
	claimHolds
	claimInTime
	outcomeFrees
	freesOwnOnly
	slotByRun
	claimTakesSlot
	reserveDoubles
	ruleCount
)

// ruleText is a rule's name and sentence.
type ruleText struct{ name, says string }

// ruleTexts say what each rule is and where it stands.
var ruleTexts = [ruleCount]ruleText{
	sequence: {"sequence", "a commit depends on the run's sequence (Commit)"},
	commitMarker: {
		"commitMarker",
		"a commit depends on the marker as read, and is repeated on the item as it is (Invariants 4, record 0001)",
	},
	moveCondition: {"moveCondition", "a marker moves only if sequence, dp and da are as read (Invariants 4)"},
	moveAfterMark: {
		"moveAfterMark",
		"a move after a mark depends on what the claim of the row knew (Invariants 4, record 0002)",
	},
	markHeldRow:     {"markHeldRow", "a mark whose claim is over marks and moves nothing (Marker table)"},
	claimMoves:      {"claimMoves", "a claim from elsewhere than q or w moves the marker to l (Marker table)"},
	terminalRemoves: {"terminalRemoves", "the end removes the marker (Invariants 1)"},
	supersede:       {"supersede", "a claim and the end supersede the outbox row (Items, latest delivery)"},
	rowFirst:        {"rowFirst", "an inspection judges the outbox row before a live reservation (Marker table)"},
	liveClaimMoves: {
		"liveClaimMoves",
		"an inspection of a row under a live claim moves the marker to o at the claim's end (Marker table)",
	},
	deadLookMoves: {"deadLookMoves", "an inspection of a dead row moves the marker to x (Marker table)"},
	scanReadsKind: {
		"scanReadsKind",
		"a due row is of a kind that its stage reads, or is moved to one (Invariants 3)",
	},
	redeliverParked: {
		"redeliverParked",
		"a published row that no worker followed is asked for again (record 0005)",
	},
	unlimitedRedelivers: {
		"unlimitedRedelivers",
		"what waited for a slot of a queue without a limit is redelivered (record 0007)",
	},
	recoverToQueued: {
		"recoverToQueued",
		"an expired running run that gets no slot is made queued and d (Marker table)",
	},
	dispatchRunning: {"dispatchRunning", "dispatch recovers running runs with an expired lease (Slots)"},
	abandonAlways:   {"abandonAlways", "the bound on abandoned attempts holds before deliveries and polls too"},
	fence:           {"fence", "an owner's write carries the lease token (Commit)"},
	slotUnchanged:   {"slotUnchanged", "a slot is taken only as it was read (Slots)"},
	lowestFree:      {"lowestFree", "free are only the lowest (limit - occupied) unused numbers (Slots)"},
	aboveFirst: {
		"aboveFirst",
		"any unused number may be taken only where none at or above the limit is occupied (Slots)",
	},
	expiredIsFree:  {"expiredIsFree", "a reservation that is over may be taken (Slots)"},
	reuseOwn:       {"reuseOwn", "a run keeps the slot that it holds (chooseSlot)"},
	reuseJudged:    {"reuseJudged", "a run's own reservation that is over is judged like any number (chooseSlot)"},
	claimHolds:     {"claimHolds", "a claim removes until from the slot (Slots)"},
	claimInTime:    {"claimInTime", "a claim on a reservation commits before its end, or not at all (Slots)"},
	outcomeFrees:   {"outcomeFrees", "the commit that ends running frees the slot (Slots)"},
	freesOwnOnly:   {"freesOwnOnly", "a slot is freed only if this run holds it (Slots)"},
	slotByRun:      {"slotByRun", "what happens to a slot follows the run item, not the policy in force (Slots)"},
	claimTakesSlot: {"claimTakesSlot", "a wakeup without a live reservation may claim with a free slot"},
	reserveDoubles: {"reserveDoubles", "each reservation that ended unclaimed makes the next twice as long"},
}

// rules is a set of rules that are taken out.
type rules uint64

func (r rules) with(one rule) rules { return r | 1<<one }

// removal is the set of one named rule; "" is the empty set.
func removal(name string) (removed rules, known bool) {
	for r := range ruleCount {
		if ruleTexts[r].name == name {
			return rules(0).with(r), true
		}
	}
	return 0, name == ""
}

// holds reports a rule that is in force.
func (w *world) holds(r rule) bool { return w.removed&(1<<r) == 0 }
