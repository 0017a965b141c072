package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun_ExitStatusAndLastLine(t *testing.T) {
	input := filepath.Join(t.TempDir(), "input.ndjson")
	if err := os.WriteFile(input, []byte(`{"id":"a","event":"push","payload":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ENDPOINT_URL", "") // no emulator, and surely no real account
	for name, c := range map[string]struct {
		arguments []string
		status    int
		stdout    string // its end
		stderr    string // part of it
	}{
		"delivered":         {[]string{"-input", input}, 0, "\ndemo: 1 runs, 1 succeeded, 0 failed, 0 lost\n", "1 ended"},
		"missing input":     {[]string{"-input", input + ".missing"}, 1, "", "validation_failed"},
		"resume embedded":   {[]string{"-resume"}, 1, "", "use -lane aws"},
		"no emulator":       {[]string{"-lane", "aws", "-input", input}, 1, "", "AWS_ENDPOINT_URL"},
		"unknown lane":      {[]string{"-lane", "other"}, 2, "", "-lane is embedded or aws"},
		"unknown flag":      {[]string{"-other"}, 2, "", "-other"},
		"too many words":    {[]string{"embedded"}, 2, "", "no arguments"},
		"help is not a run": {[]string{"-help"}, 2, "", "-resume"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			arguments := append([]string{"-state", t.TempDir()}, c.arguments...)
			if status := run(t.Context(), arguments, &stdout, &stderr, false); status != c.status {
				t.Errorf("status %d, want %d\n%s", status, c.status, &stderr)
			}
			if !strings.HasSuffix(stdout.String(), c.stdout) || c.stdout == "" && stdout.Len() > 0 || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("stdout %q, stderr %q", &stdout, &stderr)
			}
		})
	}
}
