package console

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/server"
)

// Options of [New]. nil means the zero value.
type Options struct {
	// Logger gets a line for each change that was tried: who, what, to which run, and the outcome. nil means
	// slog.Default().
	Logger *slog.Logger
}

// New makes the console of a runtime, for server.Options.Root. It starts nothing and has to be closed by nothing.
// Without a server in front of it every request is one of a stranger, who gets the page to log in. The handler is safe
// for concurrent use.
func New(rt *core.Runtime, options *Options) http.Handler {
	c := &console{rt: rt, logger: slog.Default(), mux: http.NewServeMux()}
	if options != nil && options.Logger != nil {
		c.logger = options.Logger
	}
	c.routes()
	return c
}

type console struct {
	rt     *core.Runtime
	logger *slog.Logger
	mux    *http.ServeMux
}

//go:embed assets
var assets embed.FS

// policy lets a page load what the console serves, and nothing else: no script of a payload is ever executed.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (c *console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	c.mux.ServeHTTP(w, r)
}

// maxForm bounds what a form sends: a payload, and what stands beside it.
const maxForm = 3*runlane.MaxPayloadBytes + 1<<16 // a form's encoding has up to three bytes for each

func (c *console) routes() {
	c.mux.HandleFunc("GET /assets/{name}", asset)
	c.mux.HandleFunc("GET /login", c.loginPage)
	c.mux.HandleFunc("POST /login", c.login)
	c.mux.HandleFunc("POST /logout", c.logout)
	for path, show := range map[string]func(*visitor) (*page, error){
		"GET /{$}":                            (*visitor).overview,
		"GET /runs":                           (*visitor).runs,
		"GET /runs/{run}":                     (*visitor).run,
		"GET /flows":                          (*visitor).flows,
		"GET /flows/{flow}":                   (*visitor).flow,
		"GET /queues":                         (*visitor).queues,
		"GET /schedules":                      (*visitor).schedules,
		"GET /deadletters":                    (*visitor).deadLetters,
		"GET /tasks":                          (*visitor).tasks,
		"GET /doctor":                         (*visitor).doctorForm,
		"POST /doctor":                        (*visitor).doctor,
		"GET /trigger":                        (*visitor).triggerForm,
		"POST /bulk/{change}":                 (*visitor).bulk,
		"GET /":                               (*visitor).nothing,
		"POST /trigger":                       (*visitor).trigger,
		"POST /runs/{run}/{change}":           (*visitor).changeRun,
		"POST /flows/{flow}/{change}":         (*visitor).changeFlow,
		"POST /schedules/{schedule}/{change}": (*visitor).changeSchedule,
		"POST /deadletters/{run}/requeue":     (*visitor).requeue,
	} {
		c.mux.HandleFunc(path, c.handler(show))
	}
}

// visitor is one request of a known caller.
type visitor struct {
	*console
	server.Visit
	w   http.ResponseWriter
	r   *http.Request
	now time.Time

	refused error // of a form of this page, which is shown again

	used  *lane.UsageCount // what the page has read so far
	nodes int              // of JSON that the page shows as trees so far
}

// visit begins a request: what it reads is counted where the storage counts.
func (c *console) visit(w http.ResponseWriter, r *http.Request) *visitor {
	ctx, used := lane.CountUsage(r.Context())
	return &visitor{
		console: c,
		Visit:   server.VisitOf(ctx),
		w:       w,
		r:       r.WithContext(ctx),
		now:     time.Now(),
		used:    used,
	}
}

// handler serves a page to who is known. Others log in first.
func (c *console) handler(show func(*visitor) (*page, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := c.visit(w, r)
		if !v.Known {
			if r.Method == http.MethodGet {
				http.Redirect(w, r, v.Prefix+"/login?to="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
				return
			}
			v.write(http.StatusUnauthorized, v.fault(errors.New("log in, then do it again")))
			return
		}
		var shown *page
		err := v.allowed(r.Context())
		if err == nil {
			shown, err = show(v)
		}
		kept, again := errors.AsType[*keptForm](err)
		switch {
		case again:
			v.write(statusOf(err), kept.page)
		case err != nil:
			v.write(statusOf(err), v.fault(err))
		case shown != nil: // else it has redirected
			v.write(http.StatusOK, shown)
		}
	}
}

// allowed reads the form and judges whether the caller may have what is asked for.
func (v *visitor) allowed(ctx context.Context) error {
	scope := server.ScopeRead
	if v.r.Method == http.MethodPost {
		v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
		if err := v.r.ParseForm(); err != nil {
			return &runlane.Error{
				Code:    runlane.ErrValidationFailed,
				Message: "the form cannot be read",
				Hint:    fmt.Sprintf("send at most %d bytes", maxForm),
				Cause:   err,
			}
		}
		scope = scopeOf(v.r.URL.Path, v.r.PathValue("change"))
	}
	if v.Has(scope) {
		return nil
	}
	err := &denied{scope}
	if v.r.Method == http.MethodPost {
		v.audit(ctx, "POST", slog.String("path", v.r.URL.Path), err)
	}
	return err
}

// scopeOf is what a change needs.
func scopeOf(path, change string) server.Scope {
	if path == "/trigger" || change == "signal" || change == "answer" {
		return server.ScopeTrigger
	}
	return server.ScopeOperate
}

// denied is the error of a caller without a scope.
type denied struct{ scope server.Scope }

// Error implements error.
func (d *denied) Error() string {
	return fmt.Sprintf("your token has no scope %s: use one that has it", d.scope)
}

func statusOf(err error) int {
	if _, ok := errors.AsType[*denied](err); ok {
		return http.StatusForbidden
	}
	switch runlane.CodeOf(err) {
	case runlane.ErrRunNotFound, runlane.ErrTaskNotFound, runlane.ErrScheduleNotFound, runlane.ErrFlowNotFound,
		runlane.ErrQueueNotFound:
		return http.StatusNotFound
	case runlane.ErrValidationFailed, runlane.ErrTokenInvalid, runlane.ErrConfigurationInvalid:
		return http.StatusBadRequest
	case runlane.ErrStorageConflict, runlane.ErrRunEnded:
		return http.StatusConflict
	case runlane.ErrPayloadUnreadable:
		return http.StatusUnprocessableEntity
	case runlane.ErrOperationCancelled:
		return http.StatusGatewayTimeout
	case runlane.ErrCapabilityUnsupported:
		return http.StatusNotImplemented
	case runlane.ErrStorageUnavailable, runlane.ErrTransportUnavailable, runlane.ErrTransportPublishFailed:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// write renders a page whole before any of it is sent, so that an error is never the end of half a page.
func (v *visitor) write(status int, p *page) {
	var text bytes.Buffer
	if err := v.frame(p).Render(&text); err != nil {
		http.Error(v.w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	if v.r.Method != http.MethodHead {
		_, _ = v.w.Write(text.Bytes())
	}
}

func (v *visitor) nothing() (*page, error) {
	return nil, &runlane.Error{Code: runlane.ErrRunNotFound, Message: "there is no such page", Hint: "see the overview"}
}

// changed goes on to a page where a change worked.
func (v *visitor) changed(what string, of slog.Attr, to string, err error) (*page, error) {
	v.audit(v.r.Context(), what, of, err)
	if err != nil {
		return nil, err
	}
	return v.redirect(to)
}

// audit writes a line for a change that was tried, with the words of the API's.
func (v *visitor) audit(ctx context.Context, what string, of slog.Attr, err error) {
	outcome := "done"
	if err != nil {
		outcome = string(runlane.CodeOf(err))
	}
	if _, ok := errors.AsType[*denied](err); ok {
		outcome = "forbidden"
	}
	v.logger.LogAttrs(ctx, slog.LevelInfo, "runlane: a change by the console",
		slog.String("actor", v.Caller()), slog.String("operation", what), of, slog.String("code", outcome))
}

// asset serves a file of the console. Its address has its version, so that a browser keeps it.
func asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	text, err := assets.ReadFile("assets/" + name)
	kind, known := map[string]string{
		"js":  "text/javascript; charset=utf-8",
		"css": "text/css; charset=utf-8",
		"svg": "image/svg+xml",
	}[name[strings.LastIndexByte(name, '.')+1:]]
	if err != nil || !known {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	_, _ = w.Write(text)
}

func (c *console) loginPage(w http.ResponseWriter, r *http.Request) {
	v := c.visit(w, r)
	v.write(http.StatusOK, v.loginForm())
}

// login keeps the token in a cookie. Whether it is known shows with the next request, which counts as a login.
func (c *console) login(w http.ResponseWriter, r *http.Request) {
	visit := server.VisitOf(r.Context())
	r.Body = http.MaxBytesReader(w, r.Body, 1<<14)
	to := pathHere(r.PostFormValue("to"))
	http.SetCookie(w, server.NewSession(r, visit.Prefix, strings.TrimSpace(r.PostFormValue("token"))))
	http.Redirect(w, r, visit.Prefix+to, http.StatusSeeOther)
}

// pathHere is an address of this site as a path, or the overview. Browsers leave control characters out of an address
// and read a backslash as a slash, so what is behind them may be another host.
func pathHere(to string) string {
	at, err := url.Parse(to) // an error for ASCII's control characters
	if err != nil || at.Scheme != "" || at.Host != "" || at.User != nil || !strings.HasPrefix(at.Path, "/") ||
		strings.HasPrefix(at.Path, "//") || strings.ContainsFunc(to, unicode.IsControl) {
		return "/"
	}
	return at.RequestURI() // escaped, so that no backslash is left
}

func (c *console) logout(w http.ResponseWriter, r *http.Request) {
	visit := server.VisitOf(r.Context())
	http.SetCookie(w, server.NewSession(r, visit.Prefix, ""))
	http.Redirect(w, r, visit.Prefix+"/login", http.StatusSeeOther)
}

// page is what a function shows: its title, and what stands under it.
type page struct {
	title string
	nav   string // the entry of the navigation that it belongs to
	live  string // what makes the page read itself again: "run:ID", "list", or "" for nothing
	body  g.Group
}
