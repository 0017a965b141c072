package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/server"
)

// tokenPrefix lets secret scanners recognize a leaked token.
const tokenPrefix = "runlane_"

func tokenCommand() *command {
	return &command{
		name:  "token",
		usage: "NAME",
		short: "Make a token for the server's callers",
		min:   1,
		max:   1,
		local: true,
		long: "The token is shown once; its hash goes into the file, which \"serve --tokens\" reads when it " +
			"starts. NAME becomes the actor of its requests. To withdraw the token, remove its line and restart. " +
			"Scopes: read, payloads, trigger, work, operate.",
		examples: []string{"token ci --scopes trigger,read,payloads --file tokens.ndjson"},
		act: func(flags *flag.FlagSet) action {
			var made server.Token
			var scopes words[server.Scope]
			var environments words[runlane.Environment]
			flags.Var(&environments, "environments", "NAMES of environments in which it holds; all unless given")
			file := flags.String("file", "", "FILE to add the hash to; on stderr unless given")
			flags.Var(&scopes, "scopes", "SCOPES with commas between them; read unless given")
			return func(_ context.Context, s *session, args []string) error {
				made.Name, made.Scopes, made.Environments = args[0], scopes, environments
				if made.Scopes == nil {
					made.Scopes = []server.Scope{server.ScopeRead}
				}
				return s.makeToken(&made, *file)
			}
		},
	}
}

// madeToken is a new token with its stored form.
type madeToken struct {
	Secret string `json:"token"`
	server.Token
}

func checkScopes(where string, scopes []server.Scope) error {
	for _, scope := range scopes {
		if !slices.Contains(server.Scopes(), scope) {
			return usagef(
				"scopes are read, payloads, trigger, work, operate; ",
				"%s: there is no scope %s",
				where,
				quoted(string(scope)),
			)
		}
	}
	return nil
}

func (s *session) makeToken(made *server.Token, file string) error {
	if err := checkScopes("--scopes", made.Scopes); err != nil {
		return err
	}
	if runlane.RunID(made.Name).Validate() != nil { // the rules of ids hold for actors too
		return usagef("use printable text without ':'; ", "%s cannot name a token", quoted(made.Name))
	}
	token := tokenPrefix + strings.ToLower(rand.Text()) // 130 bits
	made.Hash = server.HashToken(token)
	line, err := json.Marshal(made)
	if err != nil {
		return err
	}
	if file != "" {
		if err := s.addLine(file, line); err != nil {
			return usagef("check its name and its permissions", "%s cannot be written: %v", file, err)
		}
	} else {
		s.note("a line for the file of \"runlane serve --tokens\": %s", line)
	}
	if s.json {
		return s.emit("token", &madeToken{Secret: token, Token: *made})
	}
	s.line("%s", token)
	return nil
}

func (s *session) addLine(file string, line []byte) error {
	out, err := os.OpenFile(s.path(file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = out.Write(append(line, '\n')); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}

// maxTokens limits the file of tokens, in bytes.
const maxTokens = 1 << 20

func (s *session) readTokens(name string) (func(*http.Request) (server.Access, error), error) {
	file, err := s.input(name)
	if err != nil {
		return nil, usagef(
			"check its name and its permissions; \"runlane token\" makes one",
			"%s cannot be read: %v",
			name,
			err,
		)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxTokens))
	if err != nil {
		return nil, usagef("check its permissions", "%s cannot be read: %v", name, err)
	}
	tokens, err := parseTokens(text)
	if err != nil {
		return nil, usagef("write one JSON object a line, as \"runlane token\" does", "%s, %v", name, err)
	}
	return server.TokenAccess(tokens...)
}

// parseTokens reads one object a line and skips empty lines.
func parseTokens(text []byte) (tokens []server.Token, err error) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var token server.Token
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&token); err != nil {
			return nil, fmt.Errorf("line %d is not a token", number)
		}
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("line %d is more than a token", number)
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}
