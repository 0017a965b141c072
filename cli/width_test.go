package cli_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/runlane/runlane-go/cli"
)

// lived is a world with names as long as they are in life, and runs in every state.
func lived(t *testing.T) *world {
	t.Helper()
	w := newWorld()
	const task, queue = "integrations.salesforce.synchronize-contacts", "integrations-salesforce-eu-west-1"
	mustRun(t, w, "trigger", task, "--foreign", "--queue", queue, "--id", "run_01M7ZJ7MFPBPFKFVFT3TDXQ1ZX", "--meta", "tenant=acme-corporation")
	mustRun(t, w, "trigger", task, "--foreign", "--queue", queue, "--id", "run_01M7ZJ7MFPBPFKFVFT3TDXQ2ZX", "--delay", "90d")
	mustRun(t, w, "trigger", "emails.flaky", "--id", "run_01M7ZJ7MFPBPFKFVFT3TDXQ3ZX")
	w.millis.Add(1000)
	for range 2 {
		mustRun(t, w, "worker", "--drain", "--no-tick", "--worker-id", "ip-10-0-12-34.eu-west-1.compute.internal-48213")
		w.millis.Add(120_000)
	}
	w.refuse = true
	mustRun(t, w, "trigger", task, "--foreign", "--queue", queue, "--id", "run_01M7ZJ7MFPBPFKFVFT3TDXQ4ZX")
	w.refuse = false
	mustRun(t, w, "tick")
	mustRun(t, w, "schedules", "trigger", "nightly")
	return w
}

// TestOutput_FitsTheTerminal shows everything that people read, on terminals of several widths.
func TestOutput_FitsTheTerminal(t *testing.T) {
	t.Parallel()
	w := lived(t)
	for _, columns := range []int{100, 80, 60} {
		w.columns = columns
		for _, line := range []string{
			"runs list", "runs list --status finished", "runs attempts run_01M7ZJ7MFPBPFKFVFT3TDXQ3", "runs events run_01M7ZJ7MFPBPFKFVFT3TDXQ3",
			"runs events run_01M7ZJ7MFPBPFKFVFT3TDXQ1", "runs get run_01M7ZJ7MFPBPFKFVFT3TDXQ3", "runs explain run_01M7ZJ7MFPBPFKFVFT3TDXQ4",
			"schedules list", "schedules next nightly", "queues list", "queues stats integrations-salesforce-eu-west-1 emails", "deadletters list",
			"tasks list", "tick", "doctor",
		} {
			for _, flag := range []string{"", " --absolute", " --no-color"} {
				r := mustRun(t, w, strings.Fields(line+flag)...)
				if strings.Count(r.stdout, "\n") < 2 {
					t.Errorf("%s%s shows nothing: %q", line, flag, r.stdout)
				}
				for shown := range strings.Lines(sequences.ReplaceAllString(r.stdout, "")) {
					shown = strings.TrimSuffix(shown, "\n")
					// A word that is longer than the terminal, like an id, is left whole where it stands alone.
					if utf8.RuneCountInString(shown) > columns && (columns == 80 || len(strings.Fields(shown)) > 2) {
						t.Errorf("%s%s, on %d columns: %d in %q", line, flag, columns, utf8.RuneCountInString(shown), shown)
					}
				}
			}
		}
	}
}

var sequences = regexp.MustCompile("\x1b\\[[0-9;]*m")

// TestOutput_InAPipe_IsWhole cuts nothing off and leaves nothing out where no person has to read it.
func TestOutput_InAPipe_IsWhole(t *testing.T) {
	t.Parallel()
	w := lived(t)
	r := mustRun(t, w, "runs", "list", "--absolute")
	for _, want := range []string{"integrations.salesforce.synchronize-contacts", "CREATED", "run_01M7ZJ7MFPBPFKFVFT3TDXQ1ZX"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%s is not in\n%s", want, r.stdout)
		}
	}
	if strings.Contains(r.stdout, "…") || strings.Contains(r.stdout, "\x1b") {
		t.Errorf("%s", r.stdout)
	}
}

func TestHelp_FitsEightyColumns(t *testing.T) {
	t.Parallel()
	for path, text := range cli.Help() {
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%q has a line of %d columns: %s", path, n, line)
			}
		}
	}
}

// TestColor_IsForTerminalsThatWantIt has every way to say no.
func TestColor_IsForTerminalsThatWantIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		columns int
		env     map[string]string
		flag    string
		colored bool
	}{
		"a terminal":      {columns: 80, colored: true},
		"a pipe":          {},
		"NO_COLOR":        {columns: 80, env: map[string]string{"NO_COLOR": "1"}},
		"NO_COLOR, empty": {columns: 80, env: map[string]string{"NO_COLOR": ""}, colored: true},
		"a dumb terminal": {columns: 80, env: map[string]string{"TERM": "dumb"}},
		"the flag":        {columns: 80, flag: "--no-color"},
		"JSON":            {columns: 80, flag: "--json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			mustRun(t, w, "trigger", "emails.welcome", "--id", "some-run", "--delay", "1h")
			mustRun(t, w, "runs", "cancel", "some-run")
			w.columns = c.columns
			for name, value := range c.env {
				w.env[name] = value
			}
			for _, line := range []string{"runs list", "runs get some-run", "doctor", "runs get absent-run"} {
				r := w.run(t.Context(), strings.Fields(line+" "+c.flag)...)
				if strings.Contains(r.stdout+r.stderr, "\x1b") != c.colored {
					t.Errorf("%s: %q", line, r.stdout+r.stderr)
				}
			}
		})
	}
}
