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
		"orders":         {[]string{"-kills", "2", "-size", "10", "order"}, 0, "\ndemo: 10 orders, 10 ended right, 0 wrong\n", "death 2 of 2"},
		"a night":        {[]string{"-kills", "2", "-size", "30", "nightly"}, 0, "\ndemo: 1 reports, 1 ended right, 0 wrong\n", "death 2 of 2"},
		"none is killed": {[]string{"-kills", "0", "-size", "4", "order"}, 0, "\ndemo: 4 orders, 4 ended right, 0 wrong\n", ""},
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
	found, err := o.look(ctx, rt, 0)
	if err != nil || len(found.faults) < 6 || found.right != 0 { // none has ended, none is charged
		t.Errorf("%+v, %v", found, err)
	}
	before := len(found.faults)
	for range 9 {
		o.first("/charge", "0")
	}
	found, err = o.look(ctx, rt, 2)
	if err != nil || len(found.faults) != before-1 { // charged, and as often again as two deaths may make it
		t.Errorf("%+v, %v", found, err)
	}
	if found, err = o.look(ctx, rt, 1); err != nil || len(found.faults) != before {
		t.Errorf("%+v, %v", found, err)
	}
	n := newNight(3, 0)
	if err := n.begin(ctx, rt); err != nil {
		t.Fatal(err)
	}
	found, err = n.look(ctx, rt, 0)
	if err != nil || len(found.faults) != 3 { // no report, none mailed, nothing called
		t.Errorf("%+v, %v", found, err)
	}
}
