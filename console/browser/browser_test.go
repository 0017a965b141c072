package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/console"
	"github.com/runlane/runlane-go/console/internal/world"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
	"github.com/runlane/runlane-go/sqlitelane"
	"github.com/runlane/runlane-go/sqstransport"
)

// patience is how long a test waits for what a page does by itself: a list is read every five seconds.
const patience = 3 * time.Minute

// checks counts what was looked at, for the line at the end.
var pages, checks atomic.Int64

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		fmt.Printf("console: %d pages, %d checks, 0 violations\n", pages.Load(), checks.Load())
	}
	os.Exit(code)
}

// program is the browser of this machine.
func program(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("RUNLANE_BROWSER"), "chromium-headless-shell", "chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	t.Fatal("there is no Chromium: install chromium-headless-shell, or name one in RUNLANE_BROWSER")
	return ""
}

// person looks at the console.
type person struct {
	*world.World

	t      *testing.T
	ctx    context.Context // of the browser
	url    string
	stop   func()
	access *server.Options
	forms  *forms
	clicks int // so far
}

func newPerson(t *testing.T, l *lane.Lane, options *server.Options) *person {
	t.Helper()
	w, err := world.Open(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	p := &person{World: w, t: t, access: options, forms: newForms(t)}
	p.serve("127.0.0.1:0")
	t.Cleanup(func() { p.stop() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	t.Cleanup(cancel)
	settings := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(program(t)), chromedp.Headless, chromedp.NoFirstRun, chromedp.DisableGPU,
	}
	if os.Geteuid() == 0 {
		settings = append(settings, chromedp.NoSandbox)
	}
	ctx, cancel = chromedp.NewExecAllocator(ctx, settings...)
	t.Cleanup(cancel)
	p.ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p.do(chromedp.EmulateViewport(1280, 900))
	return p
}

// work adds flows and calls.
func (p *person) work() {
	p.t.Helper()
	if err := p.Work(p.ctx); err != nil {
		p.t.Fatal(err)
	}
}

// serve listens at an address. stop ends it.
func (p *person) serve(address string) {
	p.t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(p.t.Context(), "tcp", address)
	if err != nil {
		p.t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	options := &server.Options{}
	if p.access != nil {
		*options = *p.access
	}
	options.Logger = quiet
	options.Root = p.forms.around(console.New(p.Runtime, &console.Options{Logger: quiet}))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l, p.Runtime, options, time.Second) }()
	p.url = "http://" + l.Addr().String()
	p.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			p.t.Error(err)
		}
		ended <- nil
	}
}

func (p *person) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// prefers has the browser ask pages for a theme, as its settings do.
func (p *person) prefers(theme string) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, page *chromedp.Target) error {
		_, err := cdp.Call(ctx, page, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
		return err
	}))
}

func (p *person) open(path string) { p.t.Helper(); p.do(chromedp.Navigate(p.url + path)) }

// click clicks on what has a text: a link or a button.
func (p *person) click(text string) {
	p.t.Helper()
	p.clicks++
	path := fmt.Sprintf(`//main//*[self::a or self::button][normalize-space()=%q or @title=%[1]q]`, text)
	p.do(chromedp.Click(chromedp.Search(path)))
}

// head clicks on what has a text above the page's main part.
func (p *person) head(text string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.Search(fmt.Sprintf(`//header//*[self::a or self::button][normalize-space()=%q]`, text))))
}

// fill types a text into a field, in place of what is there.
func (p *person) fill(field, text string) {
	p.t.Helper()
	p.until(field+" is there", fmt.Sprintf(`((e) => e && (e.focus(), e.select(), true))(document.querySelector(%q)) ?? false`, field))
	p.press(text)
}

// press presses keys one after the other, as a keyboard does: what a page refuses of a key is not typed.
func (p *person) press(keys string) {
	p.t.Helper()
	for _, key := range keys {
		events := kb.Encode(key)
		down, up := events[0], events[len(events)-1]
		if len(events) == 3 {
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		p.do(chromedp.Func(func(ctx context.Context, page *chromedp.Target) error {
			_, err := cdp.Call(ctx, page, input.DispatchKeyEvent, *down)
			if err == nil {
				_, err = cdp.Call(ctx, page, input.DispatchKeyEvent, *up)
			}
			return err
		}))
	}
}

// says evaluates an expression in the page.
func says[T any](p *person, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// until waits for an expression to be true.
func (p *person) until(what, expression string) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; {
		value, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](expression))
		switch {
		case err == nil && value:
			checks.Add(1)
			return
		case p.ctx.Err() != nil || time.Now().After(end):
			p.t.Fatalf("%s: not within %s (%v)\n%s", what, patience, err, says[string](p, `location.href + "\n" + document.querySelector("main").innerText`))
		}
		<-time.After(50 * time.Millisecond)
	}
}

// onPage waits for a page whose heading begins so.
func (p *person) onPage(heading string) {
	p.t.Helper()
	p.until("page "+heading, fmt.Sprintf(`document.readyState == "complete" && document.querySelector("h1")?.innerText.startsWith(%q)`, heading))
}

// underFive judges the clicks that something took.
func (p *person) underFive() {
	p.t.Helper()
	if p.clicks >= 5 {
		p.t.Errorf("it took %d clicks", p.clicks)
	}
	checks.Add(1)
}

// shows waits for a text, or for the ID of a run, which a list shows by its ends.
func (p *person) shows(text string) {
	p.t.Helper()
	p.until("shows "+text, fmt.Sprintf(`((main) => main.innerText.includes(%q) || [...main.querySelectorAll("a.id")].some((a) => a.title == %[1]q))(document.querySelector("main"))`, text))
}

// lanes opens each lane that the console is made for, with nothing in it.
var lanes = map[string]func(t *testing.T) *lane.Lane{
	"memory": func(*testing.T) *lane.Lane { return memlane.New() },
	"file": func(t *testing.T) *lane.Lane {
		t.Helper()
		l, err := sqlitelane.Open(t.Context(), filepath.Join(t.TempDir(), "runlane.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	},
	"aws": func(t *testing.T) *lane.Lane { // DynamoDB and SQS as awslane puts them together, on local AWS
		t.Helper()
		client, queues := awstest.DynamoDB(t), awstest.SQS(t)
		transport, err := sqstransport.New(queues, map[runlane.QueueName]string{
			runlane.DefaultQueue.Name: awstest.Queue(t, queues, false).URL, // which carries all others
		}, &sqstransport.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		storage := dynamostore.New(client, awstest.Table(t, client), &dynamostore.Options{
			RequestTimeout: awstest.RequestTimeout,
		})
		l, err := lane.New(storage, transport, &lane.Options{Name: "aws", ProductionDurable: true})
		if err != nil {
			t.Fatal(err)
		}
		return l
	},
}

func axe(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(os.Getenv("RUNLANE_AXE"))
	if errors.Is(err, os.ErrNotExist) {
		t.Fatal("there is no axe: run make test-console, which gets it")
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pages are the addresses of all pages, by the names of their pictures.
func (p *person) pages() map[string]string {
	return map[string]string{
		"overview": "/", "runs": "/runs", "runs-failed": "/runs?status=failed", "run-failed": "/runs/" + string(p.Failed),
		"run-waiting": "/runs/" + string(p.Asking), "run-hostile": "/runs/" + string(p.Hostile),
		"run-succeeded": "/runs/" + string(p.Succeeded), "queues": "/queues", "schedules": "/schedules",
		"flows": "/flows", "flow-failed": "/flows/" + string(p.FailedFlow), "flow-waiting": "/flows/" + string(p.WaitingFlow),
		"run-caller": "/runs/" + string(p.Caller), "deadletters": "/deadletters", "tasks": "/tasks", "doctor": "/doctor",
		"trigger": "/trigger", "trigger-form": "/trigger?task=mail.invite", "login": "/login",
		"api": "/docs", // the server's
	}
}

// Every page over every lane, wide and as narrow as WCAG 2.2 asks (1.4.10 Reflow: 320 pixels), light and dark: nothing that axe finds, and no word on the browser's console.
func TestPages_HaveNoViolations(t *testing.T) {
	t.Parallel()
	script := axe(t)
	pictures := os.Getenv("RUNLANE_PICTURES")
	for name, open := range lanes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t, open(t), nil)
			p.work()
			heard := chromedp.Console(p.ctx)
			all, themes, widths := p.pages(), []string{"light", "dark"}, []int64{1280, 320}
			if name != "memory" { // what differs between lanes is not how a page looks
				themes, widths = themes[:1], widths[:1]
				delete(all, "api")
			}
			for _, page := range unopened(sources(t), slices.Collect(maps.Values(all))) {
				t.Errorf("%s is not among the pages that are looked at", page)
			}
			for title, path := range all {
				for _, theme := range themes {
					for _, width := range widths {
						p.do(chromedp.EmulateViewport(width, 900))
						p.prefers(theme)
						p.open(path)
						if wide := says[bool](p, `document.documentElement.scrollWidth > innerWidth`); wide {
							t.Errorf("%s is wider than a window of %d", path, width)
						}
						// The API has 150 sections of one form: axe judges some.
						says[bool](p, `[...document.querySelectorAll("main > section")].slice(20, -10).forEach((e) => e.remove()), true`)
						says[chromedp.Void](p, script)
						found := says[[]string](p, `axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
							.then(r => r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html + " " + n.failureSummary).slice(0, 3).join("; ")))`)
						for _, violation := range found {
							t.Errorf("%s, %s, %d wide: %s", path, theme, width, violation)
						}
						checks.Add(2)
						if pictures != "" {
							picture, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
							if err == nil {
								err = os.WriteFile(filepath.Join(pictures, fmt.Sprintf("%s-%s-%d.png", title, theme, width)), picture, 0o600)
							}
							if err != nil {
								t.Error(err)
							}
						}
					}
				}
				pages.Add(1)
			}
			if title := says[string](p, `document.title`); strings.Contains(title, "owned") {
				t.Error("a payload was executed")
			}
			says[bool](p, `console.error("the last word"), true`)
			for message, err := range heard {
				if err != nil {
					t.Error(err)
					break
				}
				if message.Text == "the last word" {
					break
				}
				t.Errorf("the browser's console: %s", message)
			}
		})
	}
}
