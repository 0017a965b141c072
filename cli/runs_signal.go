package cli

import (
	"context"
	"encoding/json"
	"flag"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/shown"
)

type sentFlags struct{ actor, body string }

func (f *sentFlags) define(set *flag.FlagSet) {
	set.StringVar(&f.actor, "actor", "", "NAME of the actor, kept with the change; else RUNLANE_ACTOR, else USER")
	set.StringVar(&f.body, "body", "", "JSON|@FILE|- of the signal; null unless given")
}

// read checks the flags here, so that any later refusal by core is about the run.
func (f *sentFlags) read(ctx context.Context, s *session) (runlane.Actor, json.RawMessage, error) {
	actor, err := s.actor(f.actor)
	if err != nil {
		return actor, nil, err
	}
	body, err := s.readJSON(ctx, f.body, "the body")
	return actor, body, err
}

func runsSignalCommand() *command {
	return &command{
		name:  "signal",
		usage: "[RUN] NAME",
		short: "Send a signal to a run, or to a node of a flow",
		min:   1,
		max:   2,
		long: "A run that waits for it is called again with the body; any other run finds it at its next wait of " +
			"that name. \"runs list --waiting input\" lists runs that wait for a person. With --flow and --node it " +
			"goes to the latest run of the node.",
		examples: []string{
			"runs signal run_01J8ZQ4T approved --body '{\"by\":\"ada\"}' --id mail-7",
			"runs signal run_01J8ZQ4T invoice --body @invoice.json",
			"runs signal approved --flow release-42 --node deploy --id mail-8",
		},
		act: func(flags *flag.FlagSet) action {
			var sent sentFlags
			sent.define(flags)
			id := flags.String("id", "", "ID under which it counts once; new unless given")
			var node runlane.Node
			flags.StringVar((*string)(&node.Flow), "flow", "", "FLOW of the node that it is for")
			flags.StringVar(&node.Name, "node", "", "NAME of the node that it is for")
			return func(ctx context.Context, s *session, args []string) error {
				toNode := node != runlane.Node{}
				switch {
				case toNode && (node.Flow == "" || node.Name == "" || len(args) > 1):
					return usagef("give both, and NAME alone", "--flow and --node name a node, in the place of RUN")
				case !toNode && len(args) < 2:
					return usagef("give RUN and NAME, or NAME with --flow and --node",
						"what the signal is for is missing")
				}
				actor, body, err := sent.read(ctx, s)
				if err != nil {
					return err
				}
				options := &runlane.SignalOptions{Actor: actor, ID: *id, Receipt: &runlane.SignalReceipt{}}
				if toNode {
					return s.signalNode(ctx, node, runlane.NewRawSignal(args[0], body), options)
				}
				run, err := s.findRun(ctx, args[0], true)
				if err != nil {
					return err
				}
				if err := s.runtime.Signal(ctx, run.ID, runlane.NewRawSignal(args[1], body), options); err != nil {
					return err
				}
				s.doubtSignal(run, args[1])
				return s.showSent(ctx, run.ID, options.Receipt)
			}
		},
	}
}

func (s *session) signalNode(
	ctx context.Context, node runlane.Node, value runlane.SignalValue, options *runlane.SignalOptions,
) error {
	rt, err := s.rt(ctx)
	if err != nil {
		return err
	}
	if err := rt.SignalNode(ctx, node, value, options); err != nil {
		return err
	}
	return s.showNodeSent(ctx, node, options.Receipt)
}

func (s *session) showNodeSent(ctx context.Context, node runlane.Node, receipt *runlane.SignalReceipt) error {
	state, err := s.runtime.Flows().Get(ctx, node.Flow)
	if err != nil {
		return err
	}
	found, _ := state.Node(node.Name)
	return s.showSent(ctx, found.RunID, receipt)
}

// doubtSignal warns of a name that the run does not wait for: it may be mistyped.
func (s *session) doubtSignal(run *runlane.Run, name string) {
	if run.Waiting != nil && len(run.Waiting.Names) > 0 && !slices.Contains(run.Waiting.Names, name) {
		s.note("the run waits for %s; %s is kept for a wait of that name", strings.Join(run.Waiting.Names, ", "), name)
	}
}

func runsAnswerCommand() *command {
	return &command{
		name:  "answer",
		usage: "TOKEN",
		short: "Answer the question of a run with the token of a link",
		min:   1,
		max:   1,
		long: "The token names the run and the signal, and is verified with RUNLANE_TOKEN_KEYS. It answers once: " +
			"the same again is a success, another answer is a conflict.",
		examples: []string{"runs answer rlt1.eyJlIjoi.Zm9yZ2Vk --body '{\"by\":\"ada\"}'"},
		act: func(flags *flag.FlagSet) action {
			var sent sentFlags
			sent.define(flags)
			return func(ctx context.Context, s *session, args []string) error {
				actor, body, err := sent.read(ctx, s)
				if err != nil {
					return err
				}
				rt, err := s.rt(ctx)
				if err != nil {
					return err
				}
				asked, err := rt.ReadToken(args[0])
				if err != nil {
					return err
				}
				value := runlane.NewRawSignal(asked.Signal, body)
				options := &runlane.SignalOptions{Actor: actor, Receipt: &runlane.SignalReceipt{}}
				if err := rt.Answer(ctx, args[0], value, options); err != nil {
					return err
				}
				if asked.Node.Flow != "" {
					return s.showNodeSent(ctx, asked.Node, options.Receipt)
				}
				return s.showSent(ctx, asked.RunID, options.Receipt)
			}
		},
	}
}

// showSent shows a run after a signal to it, and whether the signal existed before.
func (s *session) showSent(ctx context.Context, id runlane.RunID, receipt *runlane.SignalReceipt) error {
	run, err := s.runtime.Runs().Get(ctx, id)
	if err != nil {
		return err
	}
	if s.json {
		return s.emit("change", &shown.Change{Run: run.ID, Now: run.Status, Existing: receipt.Existing})
	}
	s.line("%s is %s", run.ID, run.Status)
	if receipt.Existing {
		s.note("the signal was there already: nothing was sent")
	}
	return nil
}
