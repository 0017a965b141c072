package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/runlane/runlane-go/internal/tools/mutation/protection"
)

// removal is one thing that is taken out: a condition in the source, a term of one, or a protection.
type removal struct {
	place    string // file:line of a condition
	function string // of a condition
	text     string // the source of a condition, or the protection
	ordinal  int    // among equal texts of the function, from 1
	id       int    // of a condition
	variable string // of the environment: the tests that have it do without

	sets     []*chunk // tests that may miss it, the fast ones first
	missedBy []string // tests that fail without it
}

// name identifies a removal across edits of other code.
func (r *removal) name() string {
	if r.function == "" {
		return r.text
	}
	name := r.function + ": " + r.text
	if r.ordinal > 1 {
		name += fmt.Sprintf(" (%d)", r.ordinal)
	}
	return name
}

// condition is one that [instrument] finds in the source.
func condition(id int, place, function, text string) *removal {
	return &removal{
		id: id, place: place, function: function, text: text, variable: mutantVariable + "=" + strconv.Itoa(id),
	}
}

// equivalents are conditions that nothing can notice the absence of, with the reason.
var equivalents = map[string]string{}

// protectionTests are the tests that miss a protection soonest.
var protectionTests = map[protection.Protection]string{
	protection.Fencing:       "^TestCondition_",
	protection.MarkerMove:    "^TestCondition_",
	protection.SlotCondition: "^TestCondition_",
	protection.OwnerDedup:    "^TestCondition_",
	protection.TokenReuse:    "^TestTransaction_",
	protection.ConflictRetry: "^TestScenarios_UnderFaults$/^Outcome",
}

// everyProtectionTest are all tests that may miss a protection.
const everyProtectionTest = "^TestCondition_|^TestHazard|^TestTransaction_|^TestScenarios_UnderFaults$"

// protections are what several conditions do together, or none of them: package protection turns them off at the seam
// of the AWS SDK. every: all tests that may miss them are asked, else those that do it soonest.
func protections(every bool) []*removal {
	var all []*removal
	for _, p := range protection.All() {
		tests := &chunk{pattern: protectionTests[p], limit: 15 * time.Minute}
		if every {
			tests = &chunk{pattern: everyProtectionTest, limit: time.Hour}
		}
		all = append(all, &removal{
			place:    "protection",
			text:     string(p),
			variable: protection.Variable + "=" + string(p),
			sets:     []*chunk{tests},
		})
	}
	return all
}
