package server

import (
	"context"
	"net/http"
	"reflect"

	"github.com/runlane/runlane-go"
)

// Line is what tests know of a line of the table.
type Line struct {
	Method, Path, Name string
	Scope              Scope
	Scopes             []Scope // all that the caller needs
	HasBody            bool
	Queries            []string
}

// Lines are those of the table.
func Lines() []Line {
	var lines []Line
	for _, o := range operations() {
		line := Line{
			Method:  o.method,
			Path:    o.path,
			Name:    o.name,
			Scope:   o.scope,
			Scopes:  o.scopes(),
			HasBody: o.in.body != nil,
		}
		for _, f := range o.in.fields {
			if f.place == inQuery {
				line.Queries = append(line.Queries, f.name)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// ParseBody is parseBody for a trigger.
func ParseBody(text []byte) error { return parseBody(text, &triggerBody{}) }

// MaxStreams is how many streams are open at once.
const MaxStreams = maxStreams

// Filters are the structs by which requests select runs.
func Filters() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[filter](), reflect.TypeFor[bulkBody]()}
}

// LoginBurst is how many logins may fail.
const LoginBurst = loginBurst

// MaxConnections are open at once.
const MaxConnections = maxConnections

// NewBounded is newBounded.
var NewBounded = newBounded

// Accepted is accepted.
var Accepted = chooseEncoding

// NewWebhooksOver is NewWebhooks with another backoff, whose requests go to a function instead of a network.
func NewWebhooksOver(backoff runlane.Backoff, receiver http.RoundTripper, hooks ...Webhook) (*Webhooks, error) {
	w, err := newWebhooks(backoff, hooks)
	if err != nil {
		return nil, err
	}
	for _, h := range w.hooks {
		if receiver != nil {
			h.client.Transport = receiver
		}
	}
	return w, nil
}

// Deliver sends the request of a delivery once.
func (w *Webhooks) Deliver(ctx context.Context, webhook, id, body string) error {
	return w.hooks[webhook].post(ctx, &runlane.Attempt{}, id, []byte(body))
}

// Signature is signature with the keys of secrets.
func Signature(secrets []string, id, timestamp, body string) (string, error) {
	keys, err := parsedSecrets(secrets)
	return signature(keys, id, timestamp, []byte(body)), err
}

// JudgeWebhook is what a webhook makes of an address and of an answer.
func JudgeWebhook(h Webhook, address string, answer *http.Response) (reach, outcome error) {
	made, err := h.checked()
	if err != nil {
		return err, err
	}
	return made.reach().Control(context.Background(), "tcp", address, nil), made.judge(answer)
}

// EndOf is what webhooks take an event for.
var EndOf = endOf
