package console

import (
	"fmt"
	"slices"
	"strings"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/shown"
)

const (
	nodeWidth  = 196
	nodeHeight = 46
	bendHeight = 14
	columnGap  = 64
	rowGap     = 14
	margin     = 4
	arrow      = 6
)

// maxPlaces limits the graph: beyond it the table is clearer.
const maxPlaces = 400

// place is the position of a node, or of a line that passes through a column.
type place struct {
	node   int // index in the flow; -1 for a passing line
	column int
	x, y   float64 // middle of the left side
	before []*place
	behind []*place
}

// drawing arranges a graph in columns from left to right: a node is right of its predecessors.
type drawing struct {
	state   *runlane.FlowState
	columns [][]*place
	nodes   []*place
	lines   int
	places  int
}

func draw(state *runlane.FlowState) *drawing {
	d := &drawing{state: state, nodes: make([]*place, len(state.Nodes))}
	if len(state.Nodes) > maxPlaces {
		return nil
	}
	depth, at := shown.Depths(state), make(map[string]int, len(state.Nodes))
	for i := range state.Nodes {
		name := state.Nodes[i].Name
		d.nodes[i], at[name] = d.add(i, depth[name]), i
	}
	passing := map[[2]int]*place{}
	for i := range state.Nodes {
		for _, name := range state.Nodes[i].After {
			from, known := at[name]
			if !known || !d.join(from, i, passing) {
				return nil
			}
		}
	}
	d.sort()
	d.measure()
	return d
}

func (d *drawing) add(node, column int) *place {
	for len(d.columns) <= column {
		d.columns = append(d.columns, nil)
	}
	p := &place{node: node, column: column}
	d.columns[column] = append(d.columns[column], p)
	d.places++
	return p
}

// join adds a line. Lines from one node share the places that they pass. It returns false if the graph becomes too
// large.
func (d *drawing) join(from, to int, passing map[[2]int]*place) bool {
	at, end := d.nodes[from], d.nodes[to]
	for column := at.column + 1; column < end.column; column++ {
		next, known := passing[[2]int{from, column}]
		if !known {
			next = d.add(-1, column)
			passing[[2]int{from, column}] = next
			d.link(at, next)
		}
		at = next
	}
	d.link(at, end)
	return d.places <= maxPlaces && d.lines <= 3*maxPlaces
}

func (d *drawing) link(from, to *place) {
	from.behind, to.before = append(from.behind, to), append(to.before, from)
	d.lines++
}

// sort moves each place towards the average of its neighbors, so that fewer lines cross.
func (d *drawing) sort() {
	row := make(map[*place]float64, d.places)
	count := func(column []*place) {
		for i, p := range column {
			row[p] = float64(i) - float64(len(column)-1)/2
		}
	}
	for _, column := range d.columns {
		count(column)
	}
	near := func(column []*place, joined func(*place) []*place) {
		middle := make(map[*place]float64, len(column))
		for _, p := range column {
			middle[p] = row[p]
			if others := joined(p); len(others) > 0 {
				sum := 0.0
				for _, o := range others {
					sum += row[o]
				}
				middle[p] = sum / float64(len(others))
			}
		}
		slices.SortStableFunc(column, func(a, b *place) int {
			switch {
			case middle[a] < middle[b]:
				return -1
			case middle[a] > middle[b]:
				return 1
			default:
				return 0
			}
		})
		count(column)
	}
	for range 2 {
		for _, column := range d.columns {
			near(column, func(p *place) []*place { return p.before })
		}
		for _, column := range slices.Backward(d.columns) {
			near(column, func(p *place) []*place { return p.behind })
		}
	}
}

func (p *place) height() float64 {
	if p.node < 0 {
		return bendHeight
	}
	return nodeHeight
}

func columnHeight(column []*place) float64 {
	sum := float64(len(column)-1) * rowGap
	for _, p := range column {
		sum += p.height()
	}
	return sum
}

func (d *drawing) size() (width, height float64) {
	for _, column := range d.columns {
		height = max(height, columnHeight(column))
	}
	return float64(len(d.columns)*(nodeWidth+columnGap)-columnGap) + 2*margin, height + 2*margin
}

func (d *drawing) measure() {
	_, height := d.size()
	for i, column := range d.columns {
		y := (height - columnHeight(column)) / 2
		for _, p := range column {
			p.x, p.y = float64(margin+i*(nodeWidth+columnGap)), y+p.height()/2
			y += p.height() + rowGap
		}
	}
}

// picture renders a graph with links to the runs. The table has the same data.
func (v *visitor) picture(state *runlane.FlowState) g.Node {
	d := draw(state)
	if d == nil {
		return h.P(h.Class("note"), g.Text("The graph is too large to look at: the table has all of it."))
	}
	width, height := d.size()
	var lines, nodes g.Group
	for _, column := range d.columns {
		for _, from := range column {
			for _, to := range from.behind {
				lines = append(lines, d.line(from, to))
			}
		}
	}
	for i, p := range d.nodes {
		nodes = append(nodes, v.node(&state.Nodes[i], p))
	}
	return h.Div(h.Class("scroll"), h.Role("region"), h.Aria("label", "Graph"), h.TabIndex("0"), h.SVG(
		h.Class("graph"), h.Role("group"), h.Aria("label", "Graph of the flow; the table of nodes says the same"),
		h.Attr("viewBox", fmt.Sprintf("0 0 %g %g", width, height)),
		h.Width(fmt.Sprintf("%g", width)), h.Height(fmt.Sprintf("%g", height)),
		h.El("clipPath", h.ID("box"), h.El("rect", h.Width(fmt.Sprint(nodeWidth-2)), h.Height(fmt.Sprint(nodeHeight)))),
		lines, nodes,
	))
}

// line draws a curve from the right side of a place to the left side of another, and through a passing place.
func (d *drawing) line(from, to *place) g.Node {
	x, end := from.x+nodeWidth, to.x
	if to.node >= 0 {
		end -= arrow
	}
	bend := max((end-x)/2, columnGap/2)
	path := fmt.Sprintf("M%g %g C%g %g %g %g %g %g", x, from.y, x+bend, from.y, end-bend, to.y, end, to.y)
	if to.node < 0 {
		return edge("edge", path+fmt.Sprintf(" H%g", to.x+nodeWidth))
	}
	class := "edge"
	if c := d.state.Nodes[to.node].If; c != "" && c != runlane.IfSucceeded {
		class += " other"
	}
	head := fmt.Sprintf("M%g %g l%d -4 v8 z", to.x, to.y, -arrow)
	return g.Group{edge(class, path), edge("arrow", head)}
}

func edge(class, path string) g.Node {
	return h.El("path", h.Class(class), h.Attr("d", path), h.Aria("hidden", "true"))
}

// node draws a clipped box with name and status, as a link if there is a run.
func (v *visitor) node(n *runlane.NodeState, p *place) g.Node {
	said := nodeWords(n)
	if n.If != "" && n.If != runlane.IfSucceeded {
		said += " · " + condition(n.If)
	}
	line := func(class, y, text string) g.Node {
		return h.El("text", h.Class(class), h.Attr("x", "12"), h.Attr("y", y), g.Text(text))
	}
	box := h.El("g", h.Attr("transform", fmt.Sprintf("translate(%g %g)", p.x, p.y-nodeHeight/2)),
		h.Attr("clip-path", "url(#box)"),
		h.El("rect", h.Class("node"), h.Attr("x", "2"), h.Attr("y", "2"), h.Attr("rx", "5"),
			h.Width(fmt.Sprint(nodeWidth-4)), h.Height(fmt.Sprint(nodeHeight-4))),
		h.El("rect", h.Class("mark "+nodeClass(n)), h.Attr("x", "3"), h.Attr("y", "3"), h.Width("4"),
			h.Height(fmt.Sprint(nodeHeight-6))),
		line("name", "20", visible(n.Name)), g.Text(" "), line("said", "36", said),
	)
	if n.Status == "" {
		return box
	}
	return h.A(h.Href(v.runPath(n.RunID)), box)
}

func condition(c runlane.Condition) string {
	if c == runlane.Always {
		return "always"
	}
	return "if " + string(c)
}

func nodeWords(n *runlane.NodeState) string { return strings.ReplaceAll(n.Words(), "_", " ") }

func nodeClass(n *runlane.NodeState) string {
	if n.Waiting.Has(runlane.WaitingEnds) || n.Status == "" {
		return "later"
	}
	return string(n.Status)
}
