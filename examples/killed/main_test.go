package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/runlane/runlane-go/core"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) != "" { // the harness starts the program that runs, again
		main()
	}
	goleak.VerifyTestMain(m)
}

func TestRun_ExitStatusAndLastLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arguments []string
		status    int
		stdout    string // its end
		stderr    string // part of it
	}{
		"orders":         {[]string{"-kills", "2", "-size", "8", "order"}, 0, "\ndemo: 8 runs, 8 succeeded, 0 failed, 0 lost\n", "death 2 of 2"},
		"a night":        {[]string{"-kills", "2", "-size", "30", "nightly"}, 0, "\ndemo: 1 runs, 1 succeeded, 0 failed, 0 lost\n", "death 2 of 2"},
		"none is killed": {[]string{"-kills", "0", "-size", "4", "order"}, 0, "\ndemo: 4 runs, 4 succeeded, 0 failed, 0 lost\n", ""},
		"no patience":    {[]string{"-patience", "1ns", "order"}, 1, "", "operation_cancelled"},
		"no example":     {nil, 2, "", "name one example"},
		"another":        {[]string{"agent"}, 2, "", "name one example"},
		"unknown flag":   {[]string{"-other"}, 2, "", "-other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			if status := run(t.Context(), c.arguments, &stdout, &stderr); status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
			if !strings.HasSuffix(stdout.String(), c.stdout) || c.stdout == "" && stdout.Len() > 0 || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("stdout %q, stderr %q", &stdout, &stderr)
			}
		})
	}
}

// What is done twice, or not at all, is found.
func TestOrders_Look_FindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	rt, err := open(ctx, "sqlite:"+t.TempDir()+"/runs.db", &core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(ctx)
	o := newOrders(3, 0)
	if err := o.begin(ctx, rt); err != nil {
		t.Fatal(err)
	}
	_, faults, err := o.look(ctx, rt)
	if err != nil || len(faults) < 6 { // none has ended, none is charged
		t.Errorf("%q, %v", faults, err)
	}
	n := newNight(3, 0)
	if err := n.begin(ctx, rt); err != nil {
		t.Fatal(err)
	}
	_, faults, err = n.look(ctx, rt)
	if err != nil || len(faults) != 3 { // no report, none mailed, nothing called
		t.Errorf("%q, %v", faults, err)
	}
}
