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
	// Logger logs each attempted change: actor, operation, run and outcome. nil means slog.Default().
	Logger *slog.Logger
}

// New makes the console of a runtime, for server.Options.Root. It needs no close. Without a server in front, every
// caller is unknown and gets the login page. The handler is safe for concurrent use.
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

// policy lets a page load only files of the console, so that no script of a payload can run.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (c *console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	c.mux.ServeHTTP(w, r)
}

const maxForm = 3*runlane.MaxPayloadBytes + 1<<16 // a form's encoding takes up to three bytes for each

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
		"GET /":                               (*visitor).notFound,
		"POST /trigger":                       (*visitor).trigger,
		"POST /runs/{run}/{change}":           (*visitor).changeRun,
		"POST /flows/{flow}/{change}":         (*visitor).changeFlow,
		"POST /queues/{queue}/{change}":       (*visitor).changeQueue,
		"POST /schedules/{schedule}/{change}": (*visitor).changeSchedule,
		"POST /deadletters/{run}/requeue":     (*visitor).requeue,
	} {
		c.mux.HandleFunc(path, c.handler(show))
	}
}

type visitor struct {
	*console
	server.Visit
	w   http.ResponseWriter
	r   *http.Request
	now time.Time

	refused error // the error of a refused form, which is shown again

	used  *lane.UsageCount // of the storage by this page
	nodes int              // JSON nodes shown so far
}

// visit begins a request and counts its reads, if the storage does.
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

// handler serves a page to known callers. Others are sent to the login.
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
		case shown != nil: // otherwise it was redirected
			v.write(http.StatusOK, shown)
		}
	}
}

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

func scopeOf(path, change string) server.Scope {
	if path == "/trigger" || change == "signal" || change == "answer" {
		return server.ScopeTrigger
	}
	return server.ScopeOperate
}

type denied struct{ scope server.Scope }

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
	case runlane.ErrStorageUnavailable, runlane.ErrTransportUnavailable, runlane.ErrTransportPublishFailed,
		runlane.ErrOverloaded:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// write renders the whole page before sending, so that an error never truncates it.
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

func (v *visitor) notFound() (*page, error) {
	return nil, &runlane.Error{Code: runlane.ErrRunNotFound, Message: "there is no such page", Hint: "see the overview"}
}

func (v *visitor) changed(what string, of slog.Attr, to string, err error) (*page, error) {
	v.audit(v.r.Context(), what, of, err)
	if err != nil {
		return nil, err
	}
	return v.redirect(to)
}

// audit logs an attempted change in the same form as the API.
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

// asset serves a file of the console. Its URL contains its version, so browsers may cache it forever.
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

// login stores the token in a cookie. The next request checks it and counts as a login.
func (c *console) login(w http.ResponseWriter, r *http.Request) {
	visit := server.VisitOf(r.Context())
	r.Body = http.MaxBytesReader(w, r.Body, 1<<14)
	to := pathHere(r.PostFormValue("to"))
	http.SetCookie(w, server.NewSession(r, visit.Prefix, strings.TrimSpace(r.PostFormValue("token"))))
	http.Redirect(w, r, visit.Prefix+to, http.StatusSeeOther)
}

// pathHere returns a URL of this site as a path, otherwise "/". Browsers drop control characters from URLs and read a
// backslash as a slash, so both could hide another host.
func pathHere(to string) string {
	at, err := url.Parse(to) // fails for ASCII control characters
	if err != nil || at.Scheme != "" || at.Host != "" || at.User != nil || !strings.HasPrefix(at.Path, "/") ||
		strings.HasPrefix(at.Path, "//") || strings.ContainsFunc(to, unicode.IsControl) {
		return "/"
	}
	return at.RequestURI() // escaped, so it contains no backslash
}

func (c *console) logout(w http.ResponseWriter, r *http.Request) {
	visit := server.VisitOf(r.Context())
	http.SetCookie(w, server.NewSession(r, visit.Prefix, ""))
	http.Redirect(w, r, visit.Prefix+"/login", http.StatusSeeOther)
}

type page struct {
	title string
	nav   string // its entry of the navigation
	live  string // what the page reloads on: "run:ID", "list", or ""
	body  g.Group
}
