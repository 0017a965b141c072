package cli

import (
	"context"
	"errors"
	"flag"
	"net/http"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/server"
)

func defineAllow(set *flag.FlagSet, allow *words[string]) {
	set.Var(allow, "allow", "TOOLS of language models that change something; none unless given")
}

func mcpCommand() *command {
	return &command{
		name:  "mcp",
		short: "Serve tools for language models over standard input and output",
		local: true,
		long: "It speaks the Model Context Protocol until its input ends; its client starts it. Tools change " +
			"nothing unless --allow names those that do: trigger, cancel, resume, retry, rerun, requeue, signal, " +
			"answer, cancel_flow, retry_flow. \"serve\" has the same tools at /mcp.",
		examples: []string{"mcp", "mcp --lane sqlite:state.db --allow retry,cancel --hide-payloads"},
		act: func(flags *flag.FlagSet) action {
			var allow words[string]
			defineAllow(flags, &allow)
			actor := flags.String("actor", "", "NAME of the actor, kept with the change; else RUNLANE_ACTOR, else USER")
			hide := flags.Bool("hide-payloads", false, "leave payloads and outputs out of answers")
			return func(ctx context.Context, s *session, _ []string) error {
				by, err := s.actor(*actor)
				if err != nil {
					return err
				}
				if s.finds && !s.elsewhere {
					if err := s.findDevState(); err != nil {
						return err
					}
				}
				return s.serveMCP(ctx, allow, &server.Options{
					Access: func(*http.Request) (server.Access, error) {
						return server.Access{Actor: by, Scopes: server.Scopes()}, nil
					},
					HidePayloads: *hide,
					Logger:       s.changes(ctx),
				})
			}
		},
	}
}

func (s *session) tools(allow []string) (MCP, error) {
	if s.mcp == nil {
		return nil, &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: "this program has no tools for language models",
			Hint:    "use the program runlane, or set cli.Options.MCP",
		}
	}
	made, err := s.mcp(allow)
	if runlane.CodeOf(err) == runlane.ErrConfigurationInvalid {
		e, _ := errors.AsType[*runlane.Error](err)
		return nil, usagef(e.Hint+"; ", "--allow: %s", e.Message)
	}
	return made, err
}

// mountMCP adds /mcp to a server, unless the program has no tools.
func (s *session) mountMCP(options *server.Options, allow []string) error {
	if s.mcp == nil && len(allow) == 0 {
		return nil
	}
	made, err := s.tools(allow)
	if err != nil {
		return err
	}
	options.Mounts = map[string]func(http.Handler) http.Handler{"/mcp": made.Handler}
	return nil
}

// serveMCP uses stdout only for the protocol. Like the server, it reads once before it starts to serve.
func (s *session) serveMCP(ctx context.Context, allow []string, options *server.Options) error {
	made, err := s.tools(allow)
	if err != nil {
		return err
	}
	rt, err := s.rt(ctx)
	if err != nil {
		return err
	}
	_, err = rt.Runs().Get(ctx, "runlane-mcp")
	if err != nil && !errors.Is(err, runlane.ErrRunNotFound) {
		return err
	}
	api, err := server.New(rt, options)
	if err != nil {
		return err
	}
	return made.Serve(ctx, api, s.stdin, s.stdout)
}
