package explore

import (
	"fmt"
	"io"
)

// PrintWorlds explores the worlds of a protocol, or the one of that name, and shows the shortest trace to what it
// finds. It returns how many states it saw, and whether all is well. most 0 is what the protocol says.
func (p *Protocol) PrintWorlds(out io.Writer, only string, without Rules, most int) (states int, ok bool) {
	ok = true
	if most == 0 {
		most = p.Most
	}
	for _, world := range p.Worlds {
		if only != "" && world != only {
			continue
		}
		f := p.Explore(world, without, most)
		states += f.States
		_, _ = fmt.Fprintf(
			out,
			"%-28s %9d states %10d steps  depth %3d  settles within %2d  ",
			world, f.States, f.Steps, f.Depth, f.Slowest,
		)
		switch {
		case f.Bad != "":
			ok = false
			_, _ = fmt.Fprintln(out, "FOUND:", f.Bad)
			for i, line := range f.Trace {
				_, _ = fmt.Fprintf(out, "  %2d %s\n", i+1, line)
			}
		case f.Cut:
			_, _ = fmt.Fprintln(out, "nothing found, cut off")
		default:
			_, _ = fmt.Fprintln(out, "nothing found, complete")
		}
	}
	return states, ok
}

// PrintMutations takes out each rule, or the one of that name, and shows the first thing that is found without it.
// most 0 is what the protocol says.
func (p *Protocol) PrintMutations(out io.Writer, only string, most int) (ok bool) {
	ok = true
	if most == 0 {
		most = p.Most
	}
	for _, r := range p.Rules {
		if only != "" && r.Name != only {
			continue
		}
		m := p.Mutate(r, most)
		ok = ok && m.Caught()
		_, _ = fmt.Fprintln(out, m)
	}
	return ok
}
