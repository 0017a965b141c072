package main

import (
	"github.com/runlane/runlane-go/spec/explore"
	"github.com/runlane/runlane-go/spec/waits"
)

// protocols are what is modeled. Names of worlds and rules are of one only.
func protocols() []*explore.Protocol { return []*explore.Protocol{markers(), waits.Protocol()} }

// markers are markers, slots, outbox rows and leases: the protocol of this package.
func markers() *explore.Protocol {
	p := &explore.Protocol{Name: "markers", Rules: ruleTexts[:], Most: cutOff}
	byName := map[string]*world{}
	for _, w := range worlds() {
		p.Worlds = append(p.Worlds, w.name)
		byName[w.name] = w
	}
	p.Explore = func(name string, without explore.Rules, most int) explore.Finding {
		w := *byName[name]
		w.removed = without
		return explore.Explore[state, label](&w, most)
	}
	return p
}

// withoutDoubling looks for reservations that go round for ever.
func withoutDoubling(most int) explore.Mutation {
	m := explore.Mutation{Rule: explore.Rule{Name: "reserveDoubles"}}
	for _, w := range reservations(false) {
		if states, _, forEver := w.circle(most); forEver {
			m.World, m.Finding = w.name, explore.Finding{States: states, Bad: "runs take turns for ever"}
			break
		}
	}
	return m
}
