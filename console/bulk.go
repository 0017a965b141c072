package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/server"
)

var bulks = []struct{ name, title, does string }{
	{"cancel", "Cancel", "active runs end; those that execute are asked to"},
	{"resume", "Resume", "waiting runs go on now"},
	{"retry", "Retry", "failed runs are repeated, as new runs, each once: one that was retried before is left as it is"},
	{"rerun", "Rerun", "finished runs are repeated, as new runs, each once: one that was rerun before is left as it is"},
}

// bulkForms shows changes for all matching runs. Each counts first.
func (v *visitor) bulkForms(query url.Values, filter core.RunFilter) g.Node {
	kept := onlyFilter(query)
	if !v.Has(server.ScopeOperate) || len(kept) == 0 {
		return g.Group{}
	}
	var forms g.Group
	for _, b := range bulks {
		if !fits(b.name, filter.Statuses) {
			continue
		}
		forms = append(forms, h.Form(h.Method("post"), h.Action(v.Prefix+"/bulk/"+b.name), hiddenFields(kept),
			h.Button(g.Text(b.title+" all…")), h.Span(h.Class("note"), g.Text(" "+b.does)),
		))
	}
	if len(forms) == 0 {
		return g.Group{}
	}
	return h.Section(h.H2(g.Text("All that match")),
		h.P(h.Class("note"), g.Text("Nothing changes before you have seen the count.")), forms)
}

// fits reports whether a change can apply to a run with one of the statuses.
func fits(change string, statuses []runlane.Status) bool {
	if len(statuses) == 0 {
		return true
	}
	return slices.ContainsFunc(statuses, func(s runlane.Status) bool {
		switch change {
		case "cancel":
			return s.Active()
		case "resume":
			return s.Waiting()
		case "retry":
			return s == runlane.StatusFailed
		default:
			return s.Terminal()
		}
	})
}

func hiddenFields(values url.Values) g.Node {
	var fields g.Group
	for _, name := range filterNames {
		for _, value := range values[name] {
			fields = append(fields, h.Input(h.Type("hidden"), h.Name(name), h.Value(value)))
		}
	}
	return fields
}

// confirmAbove is the largest number of runs that can be changed without typing their number.
const confirmAbove = 100

func (v *visitor) bulk() (*page, error) {
	change := v.r.PathValue("change")
	runs := v.rt.Runs()
	do, known := map[string]bulkCall{
		"cancel": runs.CancelAll,
		"resume": runs.ResumeAll,
		"retry":  runs.RetryAll,
		"rerun":  runs.RerunAll,
	}[change]
	if !known {
		return v.notFound()
	}
	kept := onlyFilter(v.r.PostForm)
	filter, err := filterOf(kept)
	if err != nil {
		return nil, err
	}
	options := &core.BulkOptions{RunFilter: filter, ChangeOptions: v.reason(), DryRun: true}
	counted, err := v.all(options, do)
	if err != nil {
		return nil, err
	}
	if v.r.PostFormValue("sure") != "yes" {
		return v.ask(change, kept, counted.Matched, ""), nil
	}
	if seen := v.r.PostFormValue("seen"); seen != fmt.Sprint(counted.Matched) {
		wrong := fmt.Sprintf("Now %d runs match. Nothing was changed.", counted.Matched)
		return v.ask(change, kept, counted.Matched, wrong), nil
	}
	if counted.Matched > confirmAbove && v.r.PostFormValue("count") != fmt.Sprint(counted.Matched) {
		wrong := fmt.Sprintf("Type the number of runs, %d, to go on.", counted.Matched)
		return v.ask(change, kept, counted.Matched, wrong), nil
	}
	options.DryRun = false
	done, err := v.all(options, do)
	fault := errors.Join(err, firstOf(done.Failed))
	v.audit(v.r.Context(), change+" all", slog.String("filter", kept.Encode()), fault)
	if fault != nil {
		return v.partly(change, kept, done, err)
	}
	to := onlyFilter(kept)
	to.Set("changed", fmt.Sprint(done.Changed))
	to.Set("skipped", fmt.Sprint(done.Skipped))
	return v.redirect("/runs?" + to.Encode())
}

func firstOf(failed map[runlane.RunID]error) error {
	for _, id := range slices.Sorted(maps.Keys(failed)) {
		return failed[id]
	}
	return nil
}

// changedRuns shows the result of a bulk change from the query of its redirect.
func (v *visitor) changedRuns(query url.Values) g.Node {
	changed, skipped := query.Get("changed"), query.Get("skipped")
	for _, n := range []string{changed, skipped} {
		if n == "" || len(n) > 6 || strings.Trim(n, "0123456789") != "" {
			return g.Group{}
		}
	}
	return h.P(h.Class("note"), h.Role("status"), g.Text(changed+" runs were changed. For "+skipped+
		" there was nothing to do: they had moved on, or it was done before."))
}

const failedShown = 20

// partly shows the result of a bulk change that failed for some runs.
func (v *visitor) partly(change string, kept url.Values, done *core.BulkResult, err error) (*page, error) {
	var rows g.Group
	for _, id := range slices.Sorted(maps.Keys(done.Failed)) {
		if len(rows) == failedShown {
			break
		}
		rows = append(rows, h.Tr(h.Td(v.runLink(id)), h.Td(g.Text(visible(message(done.Failed[id]))))))
	}
	return &page{title: "Not all were changed", nav: "Runs", body: g.Group{
		h.P(h.Class("bad"), h.Role("alert"), g.Textf(
			"%s: %d of %d runs were changed, for %d there was nothing to do, %d failed.",
			change, done.Changed, done.Matched, done.Skipped, len(done.Failed))),
		g.Iff(err != nil, func() g.Node {
			return h.P(g.Text("It ended before all were tried: " + visible(message(err))))
		}),
		g.If(len(rows) > 0, table("Failed", []string{"Run", "Why"}, rows, g.Text(""))),
		h.P(h.A(h.Href(v.Prefix+"/runs?"+kept.Encode()), g.Text("To the runs"))),
	}}, nil
}

type bulkCall func(context.Context, *core.BulkOptions) (*core.BulkResult, error)

// bulkMost limits the runs that one request changes.
const bulkMost = 10_000

func (v *visitor) all(o *core.BulkOptions, do bulkCall) (*core.BulkResult, error) {
	sum := &core.BulkResult{Failed: map[runlane.RunID]error{}}
	for options := *o; ; {
		part, err := do(v.r.Context(), &options)
		if part != nil {
			sum.Matched += part.Matched
			sum.Changed += part.Changed
			sum.Skipped += part.Skipped
			for id, fault := range part.Failed {
				sum.Failed[id] = fault
			}
		}
		switch {
		case err != nil:
			return sum, err
		case part.Next == "":
			return sum, nil
		case sum.Matched >= bulkMost:
			return sum, &runlane.Error{
				Code:    runlane.ErrValidationFailed,
				Message: fmt.Sprintf("more than %d runs match", bulkMost),
				Hint:    "use the command line for so many, or a narrower filter",
			}
		}
		options.After = part.Next
	}
}

// ask shows how many runs match, and the error of the previous confirmation.
func (v *visitor) ask(change string, kept url.Values, matched int, wrong string) *page {
	words := []string{"runs", change}
	for _, name := range filterNames {
		if values := kept[name]; len(values) > 0 {
			words = append(words, "--"+name, strings.Join(values, ","))
		}
	}
	does := ""
	for _, b := range bulks {
		if b.name == change {
			does = b.does
		}
	}
	title := fmt.Sprintf("%s %d runs?", strings.ToUpper(change[:1])+change[1:], matched)
	return &page{title: title, nav: "Runs", body: g.Group{
		g.If(wrong != "", h.P(h.Class("bad"), h.Role("alert"), g.Text(wrong))),
		h.P(h.Class("note"), g.Text(strings.ToUpper(does[:1])+does[1:]+".")),
		h.Form(h.Method("post"), h.Action(v.Prefix+"/bulk/"+change), h.Class("card"), hiddenFields(kept),
			h.Input(h.Type("hidden"), h.Name("sure"), h.Value("yes")),
			h.Input(h.Type("hidden"), h.Name("seen"), h.Value(fmt.Sprint(matched))),
			h.Label(h.For("reason"), g.Text("Reason, kept with the change")),
			reasonField("reason", v.r.PostFormValue("reason")),
			g.Iff(matched > confirmAbove, func() g.Node {
				return g.Group{
					h.Label(h.For("count"), g.Textf("Type %d to go on", matched)),
					h.Input(h.ID("count"), h.Name("count"), h.Required(),
						h.Attr("inputmode", "numeric"), h.AutoComplete("off")),
				}
			}),
			h.Div(
				h.Button(h.Class("danger"), g.If(matched == 0, h.Disabled()), g.Textf("%s %d", change, matched)),
				g.Text(" "),
				h.A(h.Href(v.Prefix+"/runs?"+kept.Encode()), g.Text("Leave them"))),
		),
		h.P(v.command(words...)),
	}}
}
