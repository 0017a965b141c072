package console

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/server"
)

var entries = []struct{ name, path string }{
	{"Overview", "/"}, {"Runs", "/runs"}, {"Flows", "/flows"}, {"Queues", "/queues"},
	{"Schedules", "/schedules"}, {"Dead letters", "/deadletters"}, {"Tasks", "/tasks"}, {"Doctor", "/doctor"},
}

// eventNames are the event types that reload a run's page: all except heartbeats.
var eventNames = func() string {
	var names []string
	for _, t := range runlane.EventTypes() {
		if t != runlane.EventLeaseHeartbeat {
			names = append(names, string(t))
		}
	}
	return strings.Join(names, " ")
}()

func (v *visitor) frame(p *page) g.Node {
	return h.Doctype(h.HTML(
		h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("htmx-config"), h.Content(`{"includeIndicatorCSS":false,"history":false}`)),
			h.TitleEl(g.Text(p.title+" · Runlane")),
			h.Link(h.Rel("icon"), h.Href(v.asset("icon.svg"))),
			h.Link(h.Rel("stylesheet"), h.Href(v.asset("console.css"))),
			h.Script(h.Src(v.asset("htmx.min.js")), h.Defer()),
			h.Script(h.Src(v.asset("console.js")), h.Defer()),
		),
		h.Body(
			h.Data("prefix", v.Prefix), h.Data("events", eventNames),
			h.A(h.Class("skip"), h.Href("#main"), g.Text("Skip to the page")),
			g.Iff(v.Known, func() g.Node { return v.header(p) }),
			h.Main(h.ID("main"), h.TabIndex("-1"), h.Data("live", p.live), h.H1(g.Text(p.title)), p.body),
			h.Footer(
				g.Iff(v.Known, func() g.Node {
					return g.Textf("%s on %s · made in %s%s · ",
						v.rt.Environment(), v.rt.Lane().Name, short(time.Since(v.now)), v.cost())
				}),
				h.A(h.Href(v.Prefix+"/docs"), g.Text("API")), g.Text(" · "),
				h.Button(h.Type("button"), h.ID("zone"), h.Class("plain"), g.Text("Times: UTC")), g.Text(" · "),
				h.Button(h.Type("button"), h.ID("theme"), h.Class("plain"), g.Text("Theme")), g.Text(" · "),
				h.Button(h.Type("button"), h.ID("keys"), h.Class("plain"), g.Text("Keys: ?")),
			),
			keyHelp(),
			h.Div(h.ID("said"), h.Role("status"), h.Class("sr")),
		),
	))
}

// cost describes the requests to a storage that bills by requests; otherwise "".
func (v *visitor) cost() string {
	used := v.used.Usage()
	if used.Requests == 0 {
		return ""
	}
	text := fmt.Sprintf(" · %d requests, %g read units", used.Requests, used.ReadUnits)
	if used.WriteUnits > 0 {
		text += fmt.Sprintf(", %g write units", used.WriteUnits)
	}
	return text
}

func (v *visitor) asset(name string) string {
	return v.Prefix + "/assets/" + name + "?" + assetVersion(name)
}

func (v *visitor) header(p *page) g.Node {
	return h.Header(
		h.Nav(h.Aria("label", "Pages"), h.Ul(g.Map(entries, func(e struct{ name, path string }) g.Node {
			return h.Li(h.A(
				h.Href(v.Prefix+e.path), g.If(e.name == p.nav, h.Aria("current", "page")), g.Text(e.name),
			))
		}))),
		h.Form(h.Role("search"), h.Action(v.Prefix+"/runs"), h.Method("get"),
			h.Label(h.For("search"), h.Class("sr"), g.Text("Run, flow, task or queue")),
			h.Input(h.ID("search"), h.Name("find"), h.Type("search"), h.Placeholder("Run, flow, task or queue ( / )"),
				h.AutoComplete("off"), h.Attr("spellcheck", "false")),
		),
		h.Div(h.Class("who"),
			g.If(!v.Has(server.ScopeOperate), h.Span(h.Class("note"), g.Text("read only"))),
			g.Iff(v.Has(server.ScopeTrigger), func() g.Node {
				return h.A(h.Class("button"), h.Href(v.Prefix+"/trigger"), g.Text("Trigger"))
			}),
			g.Iff(v.session(), func() g.Node {
				return h.Form(h.Method("post"), h.Action(v.Prefix+"/logout"),
					h.Span(h.Class("note"), g.Text(visible(v.Actor.ID)+" ")),
					h.Button(h.Class("plain"), g.Text("Log out")))
			}),
		),
	)
}

// session reports a browser with a session cookie.
func (v *visitor) session() bool {
	for _, cookie := range v.r.Cookies() {
		if cookie.Name == server.NewSession(v.r, v.Prefix, "").Name {
			return true
		}
	}
	return false
}

var keyHints = [][2]string{
	{"/", "search"}, {"g o", "overview"}, {"g r", "runs"}, {"g f", "flows"}, {"g q", "queues"}, {"g s", "schedules"},
	{"g d", "dead letters"}, {"g t", "tasks"}, {"g c", "doctor"}, {"j, k", "the next and the previous row"},
	{"Enter", "open the row"}, {"r", "read the page again"}, {"?", "these keys"},
}

func keyHelp() g.Node {
	return h.Dialog(h.ID("help"), h.Aria("label", "Keys"),
		h.H2(g.Text("Keys")),
		h.Dl(g.Map(keyHints, func(k [2]string) g.Node {
			return g.Group{h.Dt(h.Kbd(g.Text(k[0]))), h.Dd(g.Text(k[1]))}
		})),
		h.Form(h.Method("dialog"), h.Button(g.Text("Close"))),
	)
}

func (v *visitor) fault(err error) *page {
	var code, hint string
	if e, ok := errors.AsType[*runlane.Error](err); ok {
		code, hint = string(e.Code), e.Hint
	}
	title := "That did not work"
	if statusOf(err) == http.StatusNotFound {
		title = "Not found"
	}
	return &page{title: title, body: g.Group{
		h.P(h.Class("bad"), h.Role("alert"), g.Text(visible(message(err)))),
		g.If(hint != "", h.P(g.Text(visible(hint)))),
		g.If(code != "", h.P(h.Class("note"), g.Text("Code: "+code))),
		h.P(h.A(h.Href(v.Prefix+"/"), g.Text("To the overview"))),
	}}
}

func message(err error) string {
	if e, ok := errors.AsType[*runlane.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

func (v *visitor) loginForm() *page {
	return &page{title: "Log in", body: g.Group{
		g.If(v.Refused, h.P(h.Class("bad"), h.Role("alert"), g.Text("This token is not known here."))),
		h.Form(h.Method("post"), h.Action(v.Prefix+"/login"), h.Class("card"),
			h.Input(h.Type("hidden"), h.Name("to"), h.Value(v.r.URL.Query().Get("to"))),
			h.Label(h.For("token"), g.Text("Token")),
			h.Input(h.ID("token"), h.Name("token"), h.Type("password"), h.Required(),
				h.AutoComplete("current-password")),
			h.Button(g.Text("Log in")),
		),
		h.P(h.Class("note"), g.Text(fmt.Sprintf("Tokens are made by %q and given to %q. Scopes: read sees, "+
			"payloads shows what runs work on, trigger makes runs and answers, operate changes.",
			"runlane token", "runlane serve --tokens"))),
	}}
}
