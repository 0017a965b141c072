package console

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
)

// assetVersion is a hash of a file for its URL.
func assetVersion(name string) string {
	if known, ok := versions.Load(name); ok {
		return known.(string)
	}
	text, _ := assets.ReadFile("assets/" + name)
	sum := sha256.Sum256(text)
	version := hex.EncodeToString(sum[:6])
	versions.Store(name, version)
	return version
}

var versions sync.Map

// visible replaces control characters and direction marks, which could change how surrounding text is read.
func visible(text string) string {
	hidden := func(r rune) bool {
		return unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar ||
			unicode.Is(unicode.Cc, r) && r != '\n' && r != '\t'
	}
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&out, "\\u%04x", r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

func clip(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return string(runes[:n-1]) + "…"
}

func short(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + short(-d)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}

const exact = "2006-01-02 15:04:05.000Z"

// ago formats a time relative to now; its tooltip has the exact time.
func (v *visitor) ago(t time.Time) g.Node {
	if t.IsZero() {
		return g.Text("–")
	}
	t = t.UTC()
	text := ""
	switch d := v.now.Sub(t); {
	case t.Equal(runlane.FarMoment()):
		return g.Text("without an end")
	case d.Abs() < time.Second:
		text = "now"
	case d >= 0:
		text = rounded(d) + " ago"
	default:
		text = "in " + rounded(-d)
	}
	return h.Time(h.DateTime(t.Format(time.RFC3339Nano)), h.Title(t.Format(exact)), g.Text(text))
}

func rounded(d time.Duration) string {
	const day = 24 * time.Hour
	in := func(unit time.Duration) int { return int(d.Round(unit) / unit) }
	switch {
	case in(time.Second) < 60:
		return fmt.Sprintf("%d s", in(time.Second))
	case in(time.Minute) < 60:
		return fmt.Sprintf("%d min", in(time.Minute))
	case in(time.Hour) < 48:
		return fmt.Sprintf("%d h", in(time.Hour))
	default:
		return fmt.Sprintf("%d days", in(day))
	}
}

// badge shows a status by a word as well as by color.
func badge(s runlane.Status) g.Node {
	return h.Span(h.Class("badge "+string(s)), g.Text(strings.ReplaceAll(string(s), "_", " ")))
}

func (v *visitor) runPath(id runlane.RunID) string {
	return v.Prefix + "/runs/" + url.PathEscape(string(id))
}

func (v *visitor) runLink(id runlane.RunID) g.Node {
	return h.A(h.Class("id"), h.Href(v.runPath(id)), g.Text(visible(string(id))))
}

// shortRun links to a run by the ends of its ID, which a button copies whole.
func (v *visitor) shortRun(id runlane.RunID) g.Node {
	text := visible(string(id))
	if runes := []rune(text); len(runes) > 20 {
		text = string(runes[:8]) + "…" + string(runes[len(runes)-6:])
	}
	return h.Span(h.Class("short"), h.A(h.Class("id"), h.Href(v.runPath(id)), h.Title(visible(string(id))), g.Text(text)),
		copyButton(string(id), "the ID of run "+visible(string(id))))
}

// listed returns the URL of the list of runs with a filter.
func (v *visitor) listed(pairs ...string) string {
	query := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	return v.Prefix + "/runs?" + query.Encode()
}

// more links to the next page of a list.
func (v *visitor) more(path string, query url.Values) g.Node {
	return h.P(h.A(h.Class("button"), h.Rel("next"), h.Href(v.Prefix+path+"?"+query.Encode()), g.Text("More")))
}

func (v *visitor) queueLink(name runlane.QueueName) g.Node {
	return h.A(h.Href(v.listed("queue", string(name))), g.Text(visible(string(name))))
}

func (v *visitor) scheduleLink(id runlane.ScheduleID) g.Node {
	return h.A(h.Href(v.listed("schedule", string(id))), g.Text(visible(string(id))))
}

func choice(name, title, chosen string, words []string) g.Node {
	id := "filter-" + name
	return h.Div(h.Label(h.For(id), g.Text(title)), h.Select(h.ID(id), h.Name(name),
		h.Option(h.Value(""), g.Text("any")),
		g.Iff(chosen != "" && !slices.Contains(words, chosen), func() g.Node { // several statuses, from the URL
			return h.Option(h.Value(chosen), h.Selected(), g.Text(visible(chosen)))
		}),
		g.Map(words, func(word string) g.Node {
			return h.Option(h.Value(word), g.If(chosen == word, h.Selected()),
				g.Text(strings.ReplaceAll(word, "_", " ")))
		}),
	))
}

func reasonField(id, value string) g.Node {
	return h.Input(h.ID(id), h.Name("reason"), h.Placeholder("Reason"), h.Value(value),
		h.MaxLength(fmt.Sprint(runlane.MaxReasonBytes)))
}

func copyButton(text, what string) g.Node {
	return h.Button(h.Type("button"), h.Class("copy plain"), h.Data("copy", text), h.Aria("label", "Copy "+what),
		g.Text("Copy"))
}

// command shows the command line equivalent to a button. words are the command's name, its arguments, and then flags.
func (v *visitor) command(words ...string) g.Node {
	line := commandLine(v.rt.Environment(), words)
	return h.Span(h.Class("command"), h.Code(g.Text(visible(line))), copyButton(line, "the command"))
}

// commandLine puts flags first, so that an ID is never taken for a flag. The default environment is left out: without
// --env the command finds the file of dev.
func commandLine(environment runlane.Environment, words []string) string {
	named, about := 2, 1
	switch {
	case words[0] == "trigger":
		named, about = 1, 2
	case len(words) > 3 && words[0] == "runs" && words[1] == "signal":
		about = 2
	case len(words) > 3 && words[0] == "runs": // a bulk change, which has no ID
		about = 0
	}
	named = min(named, len(words))
	about = min(named+about, len(words))
	line := slices.Concat([]string{"runlane"}, words[:named], words[about:])
	if environment != runlane.DefaultEnvironment {
		line = append(line, "--env", string(environment))
	}
	if slices.ContainsFunc(words[named:about], func(word string) bool { return strings.HasPrefix(word, "-") }) {
		line = append(line, "--")
	}
	return strings.Join(quoted(append(line, words[named:about]...)), " ")
}

func quoted(words []string) []string {
	plain := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) ||
			strings.ContainsRune("-_./:=,@%+", r)
	}
	out := make([]string, len(words))
	for i, word := range words {
		if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
			out[i] = word
			continue
		}
		out[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return out
}

// fact is a name and a value; nil values are not shown.
type fact struct {
	name  string
	value g.Node
}

func facts(all ...fact) g.Node {
	var list g.Group
	for _, f := range all {
		if f.value != nil {
			list = append(list, h.Dt(g.Text(f.name)), h.Dd(f.value))
		}
	}
	return h.Dl(h.Class("facts"), list)
}

func text(s string) g.Node {
	if s == "" {
		return nil
	}
	return g.Text(visible(s))
}

// table shows rows under headings, or the text for an empty table.
func table(name string, columns []string, rows g.Group, empty g.Node) g.Node {
	if len(rows) == 0 {
		return h.P(h.Class("empty"), empty)
	}
	return h.Div(h.Class("scroll"), h.Role("region"), h.Aria("label", name), h.TabIndex("0"), h.Table(
		h.Caption(h.Class("sr"), g.Text(name)),
		h.THead(h.Tr(g.Map(columns, func(c string) g.Node { return h.Th(h.Scope("col"), g.Text(c)) }))),
		h.TBody(rows),
	))
}
