package cli

import (
	"context"
	"errors"
	"flag"
	"strings"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/server"
)

// webhookFlags are the options of a webhook.
type webhookFlags struct {
	url, name, secret string
	tasks             words[runlane.TaskID]
	statuses          statuses
	payload, private  bool
}

func (f *webhookFlags) define(set *flag.FlagSet) {
	set.StringVar(&f.url, "webhook", "", "URL that is told how runs end; --webhook-secret-env belongs to it")
	set.StringVar(&f.name, "webhook-name", "", "NAME by which it goes on after a restart, also at another URL")
	set.BoolVar(&f.payload, "webhook-payload", false, "tell it payloads and outputs too")
	set.BoolVar(&f.private, "webhook-private", false, "let it be in a private network or on this machine, by http too")
	set.StringVar(&f.secret, "webhook-secret-env", "", "NAME of the variable with the secret, or with two in a change")
	set.Var(&f.statuses, "webhook-status", "STATUSES that are told; succeeded, failed and cancelled unless given")
	set.Var(&f.tasks, "webhook-task", "TASKS whose runs are told; all unless given")
}

// webhooks are those of the flags; nil without any.
func (f *webhookFlags) webhooks(s *session) (*server.Webhooks, error) {
	if f.url == "" {
		if f.name != "" || f.secret != "" || f.tasks != nil || f.statuses != nil || f.payload || f.private {
			return nil, usagef("give --webhook its URL; ", "there is no webhook to which the other flags belong")
		}
		return nil, nil // no webhook is no fault
	}
	if f.secret == "" || s.getenv(f.secret) == "" {
		return nil, usagef("put a secret like whsec_… into a variable, and its name behind --webhook-secret-env; ",
			"--webhook has no secret")
	}
	hooks, err := server.NewWebhooks(server.Webhook{
		Name:     f.name,
		URL:      f.url,
		Secrets:  strings.Fields(s.getenv(f.secret)),
		Tasks:    f.tasks,
		Statuses: f.statuses,
		Payload:  f.payload,
		Private:  f.private,
	})
	if err != nil {
		return nil, err
	}
	return hooks, nil
}

// beside are what goes on beside the server.
type beside []func(context.Context) error

// tickAndTell are maintenance, if there are tasks for clients, and webhooks, which have to have begun.
func tickAndTell(rt *core.Runtime, tasks []core.ClientTask, hooks *server.Webhooks) (all beside) {
	if tasks != nil {
		all = append(all, rt.Maintain)
	}
	if hooks != nil {
		all = append(all, func(ctx context.Context) error { return hooks.Run(ctx, rt) })
	}
	return all
}

// with executes them while serve does, and ends with the first that fails.
func (b beside) with(ctx context.Context, serve func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	faults := make([]error, len(b)+1)
	for i, do := range b {
		others.Go(func() { // ends with ctx
			defer stop()
			faults[i] = do(ctx)
		})
	}
	faults[len(b)] = serve(ctx)
	stop()
	others.Wait()
	return errors.Join(faults...)
}
