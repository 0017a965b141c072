package invoices

import (
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// Service takes invoices over HTTP, and shows the page of an approval. It may run beside the worker or in another process.
type Service struct {
	Runs *core.Runtime
}

// Handler has the routes:
//
//	POST /invoices           an Invoice as JSON: 202, a run that sends it; the same one again answers the same
//	GET  /runs/{run}         how far it is
//	GET  /approve/{token}    the question of an approval, for a person
//	POST /approve/{token}    their answer, from the page's form
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /invoices", s.send)
	mux.HandleFunc("GET /runs/{run}", s.status)
	mux.HandleFunc("GET /approve/{token}", s.ask)
	mux.HandleFunc("POST /approve/{token}", s.answer)
	return http.NewCrossOriginProtection().Handler(mux)
}

// State is what the service says of an invoice.
type State struct {
	Run    runlane.RunID  `json:"run"`
	Status runlane.Status `json:"status"`
	Asks   string         `json:"asks,omitempty"`
	Number string         `json:"number,omitempty"`
	Error  string         `json:"error,omitempty"`
}

func stateOf(run *runlane.Run) State {
	state := State{Run: run.ID, Status: run.Status}
	if run.Waiting != nil {
		state.Asks = run.Waiting.Prompt
	}
	if sent, err := Send.Result(run); err == nil { // it has succeeded
		state.Number = sent.Number
	}
	if run.Status == runlane.StatusFailed {
		state.Error = run.Failure.Message
	}
	return state
}

func (s *Service) send(w http.ResponseWriter, r *http.Request) {
	var i Invoice
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 100_000)).Decode(&i); err != nil || i.ID == "" || i.Customer == "" {
		http.Error(w, "send an invoice with id, customer and cents", http.StatusBadRequest)
		return
	}
	// The run is durable once Trigger has returned. What this process does from here on loses nothing.
	result, err := s.Runs.Trigger(r.Context(), Send.With(i), nil)
	if err != nil {
		fail(w, err)
		return
	}
	if result.PayloadDiffers {
		http.Error(w, "invoice "+i.ID+" was sent with another content", http.StatusConflict)
		return
	}
	w.Header().Set("Location", "/runs/"+string(result.Run.ID))
	write(w, http.StatusAccepted, stateOf(result.Run))
}

func (s *Service) status(w http.ResponseWriter, r *http.Request) {
	run, err := s.Runs.Runs().Get(r.Context(), runlane.RunID(r.PathValue("run")))
	if err != nil {
		fail(w, err)
		return
	}
	write(w, http.StatusOK, stateOf(run))
}

var page = template.Must(template.New("approval").Parse(`<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">
<title>Approval</title><h1>{{.Question}}</h1>{{if .Open}}
<form method="post"><label>Your name <input name="by" required></label>
<button name="approved" value="true">Send it</button> <button name="approved" value="false" formnovalidate>Refuse it</button></form>
{{else}}<p>Nothing is waiting for an answer any more.</p>{{end}}
`))

// ask shows the question. Reading changes nothing: mail programs open links before people do.
func (s *Service) ask(w http.ResponseWriter, r *http.Request) {
	token, err := s.Runs.ReadToken(r.PathValue("token"))
	var run *runlane.Run
	if err == nil {
		run, err = s.Runs.Runs().Get(r.Context(), token.RunID)
	}
	if err != nil {
		fail(w, err)
		return
	}
	state := stateOf(run)
	question := state.Asks
	if question == "" {
		question = "This invoice is " + string(run.Status)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = page.Execute(w, map[string]any{"Question": question, "Open": state.Asks != ""})
}

func (s *Service) answer(w http.ResponseWriter, r *http.Request) {
	decision := Decision{Approved: r.FormValue("approved") == "true", By: r.FormValue("by")}
	err := s.Runs.Answer(r.Context(), r.PathValue("token"), Decided.With(decision), nil)
	if err != nil {
		fail(w, err)
		return
	}
	http.Redirect(w, r, r.URL.Path, http.StatusSeeOther)
}

// fail answers with what the caller can do about an error.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable // call again
	switch {
	case errors.Is(err, runlane.ErrRunNotFound), errors.Is(err, runlane.ErrTokenInvalid):
		status = http.StatusNotFound
	case errors.Is(err, runlane.ConflictSignal): // somebody else answered first
		status = http.StatusConflict
	case errors.Is(err, runlane.ErrValidationFailed):
		status = http.StatusBadRequest
	case errors.Is(err, context.Canceled):
		return // nobody reads the answer
	}
	http.Error(w, err.Error(), status)
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
