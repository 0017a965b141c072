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

type webhookFlags struct {
	url, name, secret string
	tasks             words[runlane.TaskID]
	statuses          statuses
	payload, private  bool
}

func (f *webhookFlags) define(set *flag.FlagSet) {
	set.StringVar(&f.url, "webhook", "", "URL to notify when runs end; needs --webhook-secret-env")
	set.StringVar(&f.name, "webhook-name", "", "NAME by which it continues, even at another URL")
	set.BoolVar(&f.payload, "webhook-payload", false, "include payloads and outputs")
	set.BoolVar(&f.private, "webhook-private", false, "allow a private network or this machine, and http for them")
	set.StringVar(&f.secret, "webhook-secret-env", "", "NAME of the variable with the secret")
	set.Var(&f.statuses, "webhook-status", "STATUSES to notify of; succeeded, failed and cancelled unless given")
	set.Var(&f.tasks, "webhook-task", "TASKS whose runs it is notified of; all unless given")
}

// webhooks makes the webhooks of the flags, or returns nil if there are none.
func (f *webhookFlags) webhooks(s *session) (*server.Webhooks, error) {
	if f.url == "" {
		if f.name != "" || f.secret != "" || f.tasks != nil || f.statuses != nil || f.payload || f.private {
			return nil, usagef("give --webhook its URL; ", "the flags of a webhook need --webhook")
		}
		return nil, nil // no webhook is not an error
	}
	if f.secret == "" || s.getenv(f.secret) == "" {
		return nil, usagef("put a secret like whsec_… into a variable, and its name after --webhook-secret-env; ",
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

// background holds functions that run during serve.
type background []func(context.Context) error

// backgroundWork returns maintenance, if there are tasks for clients, and webhooks, which must have begun.
func backgroundWork(rt *core.Runtime, tasks []core.ClientTask, hooks *server.Webhooks) (all background) {
	if tasks != nil {
		all = append(all, rt.Maintain)
	}
	if hooks != nil {
		all = append(all, func(ctx context.Context) error { return hooks.Run(ctx, rt) })
	}
	return all
}

// with runs them during serve, and stops all when one ends.
func (b background) with(ctx context.Context, serve func(context.Context) error) error {
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
