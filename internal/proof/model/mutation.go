package main

import "fmt"

// mutation is what is found without a rule.
type mutation struct {
	rule    rule
	world   string // "" : nothing was found
	finding finding
}

// unnoticed are the rules whose absence the model does not show, with the reason.
var unnoticed = map[rule]string{
	claimTakesSlot: "the tick reserves instead: the rule makes things faster",
}

// pairs are rules that are taken out together, because the second repairs what the first prevents.
var pairs = map[rule]rule{reuseOwn: recoverToQueued}

func (m mutation) caught() bool { return m.world != "" || unnoticed[m.rule] != "" }

func (m mutation) String() string {
	name := ruleTexts[m.rule].name
	if m.world == "" {
		why := unnoticed[m.rule]
		if why == "" {
			why = "NOT FOUND"
		}
		return fmt.Sprintf("%-20s %-24s %9s %5s  %s", name, "-", "-", "-", why)
	}
	return fmt.Sprintf("%-20s %-24s %9d %5d  %s", name, m.world, m.finding.states, len(m.finding.trace), m.finding.bad)
}

// mutate takes each rule out and explores the worlds in turn until one shows it.
func mutate(most int) []mutation {
	var all []mutation
	for r := range ruleCount {
		all = append(all, without(r, most))
	}
	return all
}

func without(r rule, most int) mutation {
	if unnoticed[r] != "" {
		return mutation{rule: r}
	}
	if r == reserveDoubles {
		return withoutDoubling()
	}
	for _, w := range worlds() {
		if m := withoutIn(r, w.name, most); m.world != "" {
			return m
		}
	}
	return mutation{rule: r}
}

// withoutIn takes a rule out of one world.
func withoutIn(r rule, name string, most int) mutation {
	for _, w := range worlds() {
		if w.name != name {
			continue
		}
		w.removed = rules(0).with(r)
		if other, ok := pairs[r]; ok {
			w.removed = w.removed.with(other)
		}
		if f := w.explore(most); f.bad != "" {
			return mutation{r, name, f}
		}
	}
	return mutation{rule: r}
}

// withoutDoubling looks for reservations that go round for ever.
func withoutDoubling() mutation {
	for _, w := range reservations(false) {
		if states, _, forEver := w.circle(cutOff); forEver {
			return mutation{reserveDoubles, w.name, finding{states: states, bad: "runs take turns for ever"}}
		}
	}
	return mutation{rule: reserveDoubles}
}
