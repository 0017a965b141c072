//go:build unix

package target_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/runlanetest"
	"github.com/runlane/runlane-go/target"
)

func TestCommand_ItsEndDecides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run, more, says string
		permanent       bool
		check           func(r *runlane.Receipt) bool
	}{
		"payload is data": {
			run: `[printf, "%s|", "$HOME; ${payload.name}", "--n=${payload.n}"]`,
			check: func(r *runlane.Receipt) bool {
				return r.Stdout == `$HOME; $(touch x)`+"`'\"|--n=1|" && *r.ExitCode == 0 && r.Command == "printf"
			},
		},
		"stdin": {run: `[cat]`, check: func(r *runlane.Receipt) bool { return strings.HasSuffix(r.Stdout, `xx"}`) }},
		"variables": {
			run: `[sh, -c, 'env; echo "$TOKEN" >&2; pwd']`, more: `, env: {TOKEN: "${secret.key}"}, dir: /`,
			check: func(r *runlane.Receipt) bool {
				return r.Stderr == "***\n" && strings.Contains(r.Stdout, "RUNLANE_RUN_ID=run_test\n") &&
					!strings.Contains(r.Stdout, "GOCACHE") && strings.HasSuffix(r.Stdout, "\n/\n")
			},
		},
		"tail": {
			run: `[sh, -c, 'i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done']`,
			check: func(r *runlane.Receipt) bool {
				return r.Cut && len(r.Stdout) <= 4<<10 && strings.HasSuffix(r.Stdout, "line 1999\n")
			},
		},
		"exit code":        {run: `[sh, -c, 'exit 3']`, more: `, permanent: [2]`, says: "exit code 3", check: func(r *runlane.Receipt) bool { return *r.ExitCode == 3 }},
		"permanent":        {run: `[sh, -c, 'exit 3']`, more: `, permanent: [1-4]`, says: "exit code 3", permanent: true},
		"signal":           {run: `[sh, -c, 'kill -9 $$']`, says: "killed", check: func(r *runlane.Receipt) bool { return r.ExitCode == nil && r.Signal == "killed" }},
		"missing":          {run: `[/no/such/program]`, says: "did not start", check: func(r *runlane.Receipt) bool { return r.ExitCode == nil }},
		"ignores stdin":    {run: `["true"]`},
		"zero byte":        {run: `[echo, "${payload.zero}"]`, says: "zero byte", permanent: true, check: func(r *runlane.Receipt) bool { return r == nil }},
		"holds its output": {run: `[sh, -c, 'sleep 1000 & echo done']`, check: func(r *runlane.Receipt) bool { return r.Stdout == "done\n" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := execute(t, "    command: {run: "+c.run+c.more+"}", `{"name":"$(touch x)`+"`'\\\""+`","n":1,"zero":"\u0000","large":"`+strings.Repeat("x", 1<<20)+`"}`)
			_, permanent := errors.AsType[*runlane.PermanentError](err)
			if (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), c.says) || runlane.CodeOf(err) != target.ErrFailed) ||
				permanent != c.permanent {
				t.Errorf("%v, permanent: %t", err, permanent)
			}
			if c.check != nil && !c.check(a.Receipt()) {
				t.Errorf("the receipt is %.300q", jsonOf(a.Receipt()))
			}
		})
	}
}

// The end of an output may begin within a secret, and have so many that it is short without them.
func TestCommand_NoPartOfASecret(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", 100)
	for script, c := range map[string]struct{ secret, want string }{
		`for i in 1 2 3 4 5 6 7 8 9; do printf %s "$S"; done; echo end`: {long, "***end\n"},
		`for line in $S; do echo "> $line"; done`:                       {"line-of-a-key\nanother-line\n", "> ***\n> ***\n"},
		`printf "ab-other-cd"`:                                          {"ab-oth", "***cd"},
	} {
		read, err := target.Read([]byte("secrets: {s: {env: S}, o: {env: O}}\ntasks: {t: {command: {run: [sh, -c, '"+script+"'], env: {S: '${secret.s}'}}}}"),
			&target.Options{Getenv: func(name string) string { return map[string]string{"S": c.secret, "O": "-other-"}[name] }})
		if err != nil {
			t.Fatal(err)
		}
		a := runlanetest.NewAttempt(t, nil)
		err = a.Execute(t.Context(), read.Handlers[0], runlane.NewRawCall(read.Handlers[0].Task, json.RawMessage("{}")))
		if err != nil || a.Receipt().Stdout != c.want {
			t.Errorf("%s: %v, %.200q", script, err, a.Receipt().Stdout)
		}
	}
}

func jsonOf(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// The end of an attempt ends the whole process group of its command: it is asked first, and killed when it stays.
func TestCommand_ItsGroupIsEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		ends   func(r *runlane.Receipt) bool
	}{
		"asked":  {`trap "echo asked; exit 7" TERM; echo up >&9; sleep 1000 & wait`, func(r *runlane.Receipt) bool { return r.Stdout == "asked\n" && *r.ExitCode == 7 }},
		"killed": {`trap "" TERM; (echo up >&9; sleep 1000)`, func(r *runlane.Receipt) bool { return r.Signal == "killed" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "alive")
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			pipe, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer pipe.Close()
			// A writer of this process, until the command is up: without any writer a read ends.
			writer, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			if err := pipe.SetDeadline(time.Now().Add(patience.Limit)); err != nil {
				t.Fatal(err)
			}
			read, err := target.Read([]byte("tasks: {t: {command: {run: [sh, -c, 'exec 9>$ALIVE; "+c.script+"'], env: {ALIVE: "+path+"}}}}"), nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			a := runlanetest.NewAttempt(t, nil)
			ended := make(chan error, 1)
			go func() { // ends with ctx
				ended <- a.Execute(ctx, read.Handlers[0], runlane.NewRawCall(read.Handlers[0].Task, json.RawMessage("{}")))
			}()
			lines := bufio.NewReader(pipe)
			if up, err := lines.ReadString('\n'); err != nil {
				t.Fatal(up, err)
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the attempt ends with %v", err)
			}
			if !c.ends(a.Receipt()) {
				t.Errorf("the receipt is %s", jsonOf(a.Receipt()))
			}
			writer.Close()
			if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 { // it ends when nobody can write any more
				t.Errorf("somebody is left: %q, %v", rest, err)
			}
		})
	}
}
