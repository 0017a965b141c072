package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

// dashboard is what a test knows of Grafana's format.
type dashboard struct {
	Panels []struct {
		ID                       int
		Type, Title, Description string
		GridPos                  struct{ H, W, X, Y int }
		Targets                  []struct{ RefID, Expr, LegendFormat string }
	}
	Templating struct {
		List []struct{ Name, Definition string }
	}
}

const dashboardFile = "../deploy/grafana/runlane.json"

func readDashboard(t *testing.T) (text []byte, d *dashboard) {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(dashboardFile))
	if err != nil {
		t.Fatal(err)
	}
	d = &dashboard{}
	if err := json.Unmarshal(text, d); err != nil {
		t.Fatal(err)
	}
	return text, d
}

// notShown are exported names that no panel needs, and why.
var notShown = map[string]string{
	"runlane_heartbeats_total": "it follows from the attempts that run",
}

// exported are the names of everything that /metrics may have, and which are histograms.
func exported(t *testing.T) map[string]string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "core", "metrics.go"))
	if err != nil {
		t.Fatal(err)
	}
	counts, durations, ok := strings.Cut(string(source), "// The durations.")
	if !ok {
		t.Fatal("core/metrics.go has no durations")
	}
	constant := regexp.MustCompile(`Metric += "([a-z_]+)"`)
	l, err := lane.New(paid{memlane.NewStorage(nil)}, memlane.NewTransport(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &server.Metrics{}
	for _, found := range constant.FindAllStringSubmatch(counts, -1) {
		m.Count(core.Metric(found[1]), 1, core.Labels{})
	}
	for _, found := range constant.FindAllStringSubmatch(durations, -1) {
		m.Observe(core.Metric(found[1]), 1, core.Labels{})
	}
	w := metricsWorldOn(t, l, m)
	w.ask(t, "GET", "/v1/runs", "")
	names := map[string]string{}
	for line := range strings.Lines(w.ask(t, "GET", "/metrics", "").text) {
		if found := typeLine.FindStringSubmatch(strings.TrimSpace(line)); found != nil {
			names[found[1]] = found[2]
		}
	}
	if len(names) < 25 {
		t.Fatalf("only %v", names)
	}
	return names
}

var usedName = regexp.MustCompile(`runlane_[a-z_]+`)

// misused says what is wrong with the names of one query.
func misused(query string, names map[string]string) (used, faults []string) {
	for _, name := range usedName.FindAllString(query, -1) {
		base, bucket := strings.CutSuffix(name, "_bucket")
		used = append(used, base)
		switch kind := names[base]; {
		case kind == "":
			faults = append(faults, name+" is not exported")
		case bucket != (kind == "histogram"):
			faults = append(faults, name+" is a "+kind)
		case kind != "gauge" && !strings.Contains(query, "rate("+name):
			faults = append(faults, name+" only grows: show its rate")
		}
	}
	return used, faults
}

// Every name that the dashboard uses is exported, and every exported one is on it.
func TestDashboard_NamesAreThoseOfTheMetrics(t *testing.T) {
	t.Parallel()
	names, shown := exported(t), map[string]bool{}
	_, d := readDashboard(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			used, faults := misused(target.Expr, names)
			for _, fault := range faults {
				t.Errorf("%s: %s", p.Title, fault)
			}
			if len(used) == 0 {
				t.Errorf("%s: a query of nothing: %s", p.Title, target.Expr)
			}
			for _, name := range used {
				shown[name] = true
			}
		}
	}
	for _, v := range d.Templating.List {
		for _, name := range usedName.FindAllString(v.Definition, -1) {
			if names[name] == "" {
				t.Errorf("the variable %s: %s is not exported", v.Name, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if shown[name] == (notShown[name] != "") {
			t.Errorf("%s is on the dashboard: %v", name, shown[name])
		}
	}
}

// A dashboard that Grafana wrote anew differs in nothing but what was changed: one form, no id of an installation.
func TestDashboard_HasOneForm(t *testing.T) {
	t.Parallel()
	text, d := readDashboard(t)
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil || !bytes.Equal(bytes.TrimSpace(indented.Bytes()), bytes.TrimSpace(text)) {
		t.Errorf("it is not indented by two spaces: %v", err)
	}
	if bytes.Contains(text, []byte(`"uid": "P`)) || bytes.Contains(text, []byte("\n  \"id\":")) {
		t.Error("it names an installation: use ${datasource}, and leave its id out")
	}
	ids, titles, places := map[int]bool{}, map[string]bool{}, map[string]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || titles[p.Title] || p.Title == "" {
			t.Errorf("panel %d %q: the id or the title stands twice", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				place := fmt.Sprint(x, " ", y)
				if other := places[place]; other != "" || x >= 24 {
					t.Fatalf("%s lies on %s at %s", p.Title, other, place)
				}
				places[place] = p.Title
			}
		}
		if p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("%s has no description, or shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			if target.RefID == "" || target.LegendFormat == "" {
				t.Errorf("%s: %+v", p.Title, target)
			}
		}
	}
}
