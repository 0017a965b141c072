package main

import "github.com/runlane/runlane-go/spec/explore"

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
	returnsReserved
	ruleCount
)

// ruleTexts say what each rule is and where it stands.
var ruleTexts = [ruleCount]explore.Rule{
	sequence: {Name: "sequence", Says: "a commit depends on the run's sequence (Commit)"},
	commitMarker: {
		Name: "commitMarker",
		Says: "a commit depends on the marker as read, or is repeated on the item (Invariants 4)",
	},
	moveCondition: {
		Name: "moveCondition",
		Says: "a marker moves only if sequence, dp and da are as read (Invariants 4)",
	},
	moveAfterMark: {
		Name: "moveAfterMark",
		Says: "a move after a mark depends on what the claim of the row knew (Invariants 4)",
	},
	markHeldRow: {Name: "markHeldRow", Says: "a mark whose claim is over marks and moves nothing (Marker table)"},
	claimMoves: {
		Name: "claimMoves",
		Says: "a claim from elsewhere than q or w moves the marker to l (Marker table)",
	},
	terminalRemoves: {Name: "terminalRemoves", Says: "the end removes the marker (Invariants 1)"},
	supersede: {
		Name: "supersede",
		Says: "a claim and the end supersede the outbox row (Items, latest delivery)",
	},
	rowFirst: {
		Name: "rowFirst",
		Says: "an inspection judges the outbox row before a live reservation (Marker table)",
	},
	liveClaimMoves: {
		Name: "liveClaimMoves",
		Says: "an inspection of a row under a live claim moves the marker to o at the claim's end (Marker table)",
	},
	deadLookMoves: {Name: "deadLookMoves", Says: "an inspection of a dead row moves the marker to x (Marker table)"},
	scanReadsKind: {
		Name: "scanReadsKind",
		Says: "a due row is of a kind that its stage reads, or is moved to one (Invariants 3)",
	},
	redeliverParked: {
		Name: "redeliverParked",
		Says: "a published row that no worker followed is asked for again",
	},
	unlimitedRedelivers: {
		Name: "unlimitedRedelivers",
		Says: "what waited for a slot of a queue without a limit is redelivered",
	},
	recoverToQueued: {
		Name: "recoverToQueued",
		Says: "an expired running run that gets no slot is made queued and d (Marker table)",
	},
	dispatchRunning: {Name: "dispatchRunning", Says: "dispatch recovers running runs with an expired lease (Slots)"},
	abandonAlways: {
		Name: "abandonAlways",
		Says: "the bound on abandoned attempts holds before deliveries and polls too",
	},
	fence:         {Name: "fence", Says: "an owner's write carries the lease token (Commit)"},
	slotUnchanged: {Name: "slotUnchanged", Says: "a slot is taken only as it was read (Slots)"},
	lowestFree:    {Name: "lowestFree", Says: "free are only the lowest (limit - occupied) unused numbers (Slots)"},
	aboveFirst: {
		Name: "aboveFirst",
		Says: "any unused number may be taken only where none at or above the limit is occupied (Slots)",
	},
	expiredIsFree: {Name: "expiredIsFree", Says: "a reservation that is over may be taken (Slots)"},
	reuseOwn: {
		Name: "reuseOwn",
		Says: "a run keeps the slot that it holds (chooseSlot)",
		With: "recoverToQueued",
	},
	reuseJudged: {
		Name: "reuseJudged",
		Says: "a run's own reservation that is over is judged like any number (chooseSlot)",
	},
	claimHolds: {Name: "claimHolds", Says: "a claim removes until from the slot (Slots)"},
	claimInTime: {
		Name: "claimInTime",
		Says: "a claim on a reservation commits before its end, or not at all (Slots)",
	},
	outcomeFrees: {Name: "outcomeFrees", Says: "the commit that ends running frees the slot (Slots)"},
	freesOwnOnly: {Name: "freesOwnOnly", Says: "a slot is freed only if this run holds it (Slots)"},
	slotByRun: {
		Name: "slotByRun",
		Says: "what happens to a slot follows the run item, not the policy in force (Slots)",
	},
	claimTakesSlot: {
		Name:      "claimTakesSlot",
		Says:      "a wakeup without a live reservation may claim with a free slot",
		Unnoticed: "the tick reserves instead: the rule makes things faster",
	},
	reserveDoubles: {
		Name:  "reserveDoubles",
		Says:  "each reservation that ended unclaimed makes the next twice as long",
		Alone: withoutDoubling,
	},
	returnsReserved: {
		Name: "returnsReserved",
		Says: "a slot is given back only as its run's reservation has it (Slots)",
	},
}

// holds reports a rule that is in force.
func (w *world) holds(r rule) bool { return !w.removed.Lacks(int(r)) }
