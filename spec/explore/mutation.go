package explore

import "fmt"

// Rule is one sentence of a design that can be taken out.
type Rule struct {
	Name, Says string
	// With is a rule that is taken out along, because it repairs what this one prevents.
	With string
	// Unnoticed says why the absence of a rule cannot be seen.
	Unnoticed string
	// Alone looks for what is found without the rule where the protocol's worlds do not show it.
	Alone func(most int) Mutation
}

// Protocol is a design as a model: its rules and its worlds.
type Protocol struct {
	Name  string
	Rules []Rule
	// Most is how many states of a world are explored unless it is said.
	Most int
	// Worlds are the names of the small worlds, in the order in which they are gone through.
	Worlds []string
	// Explore goes through a world without some rules, up to so many states.
	Explore func(world string, without Rules, most int) Finding
}

// Rules are a set of rules that are taken out, by their place in a protocol's list.
type Rules uint64

// Lacks reports a rule that is taken out.
func (r Rules) Lacks(rule int) bool { return r&(1<<rule) != 0 }

// Without is the set of a rule and what is taken out along; known is false for a name of none.
func (p *Protocol) Without(name string) (set Rules, known bool) {
	for i, r := range p.Rules {
		if r.Name != name {
			continue
		}
		set = 1 << i
		if r.With != "" {
			with, _ := p.Without(r.With)
			set |= with
		}
		return set, true
	}
	return 0, false
}

// Mutation is what is found without a rule.
type Mutation struct {
	Rule    Rule
	World   string // "" : nothing was found
	Finding Finding
}

// Caught reports that something was found, or that nothing can be.
func (m Mutation) Caught() bool { return m.World != "" || m.Rule.Unnoticed != "" }

// String is a line of a table.
func (m Mutation) String() string {
	if m.World == "" {
		why := m.Rule.Unnoticed
		if why == "" {
			why = "NOT FOUND"
		}
		return fmt.Sprintf("%-20s %-24s %9s %5s  %s", m.Rule.Name, "-", "-", "-", why)
	}
	f := m.Finding
	return fmt.Sprintf("%-20s %-24s %9d %5d  %s", m.Rule.Name, m.World, f.States, len(f.Trace), f.Bad)
}

// Mutate takes a rule out and explores the worlds in turn until one shows it.
func (p *Protocol) Mutate(r Rule, most int) Mutation {
	switch {
	case r.Unnoticed != "":
		return Mutation{Rule: r}
	case r.Alone != nil:
		return r.Alone(most)
	}
	for _, world := range p.Worlds {
		if m := p.MutateIn(r, world, most); m.World != "" {
			return m
		}
	}
	return Mutation{Rule: r}
}

// MutateIn takes a rule out of one world.
func (p *Protocol) MutateIn(r Rule, world string, most int) Mutation {
	without, _ := p.Without(r.Name)
	if f := p.Explore(world, without, most); f.Bad != "" {
		return Mutation{Rule: r, World: world, Finding: f}
	}
	return Mutation{Rule: r}
}
