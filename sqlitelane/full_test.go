package sqlitelane_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/doctor"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
)

// journal is what a logger wrote, line by line.
type journal chan string

func (j journal) Write(p []byte) (int, error) {
	j <- string(p)
	return len(p), nil
}

// While the disk is full reads go on, and a worker says at once, and once, why it takes nothing.
func TestFullDisk_ReadsGoOn_AndAWorkerSaysSoOnce(t *testing.T) {
	t.Parallel()
	s, disk := onDisk(t)
	run, err := s.AppendRunEvents(t.Context(), lanetest.NewFactory("default").Creation(t, noon, lanetest.RunOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	wakeups, said := sqlitelane.NewTransport(s), make(journal, 100)
	if err := wakeups.Start(t.Context(), lane.StartOptions{Logger: slog.New(slog.NewTextHandler(said, nil))}); err != nil {
		t.Fatal(err)
	}
	wakeup := lane.Wakeup{RunKey: lane.RunKey{Environment: "default", RunID: run.Run.ID}, Queue: "mail"}
	outcomes, err := wakeups.PublishWakeups(t.Context(), &lane.PublishCommand{Attempts: []lane.PublishAttempt{{Wakeup: wakeup}}})
	if err != nil || outcomes[0].Type != lane.Published {
		t.Fatal(err, outcomes)
	}
	disk.Fill(0)
	ctx, cancel := context.WithCancel(t.Context())
	handled, ended := make(chan runlane.RunID, 1), make(chan error, 1)
	go func() { // ends with the context
		ended <- wakeups.Receive(ctx, []runlane.QueueName{"mail"}, 1, func(_ context.Context, w lane.Wakeup) error {
			handled <- w.RunID
			return nil
		})
	}()
	if line := <-said; !strings.Contains(line, "is full") || !strings.Contains(line, "code=storage_unavailable") {
		t.Error(line)
	}
	for range 5 {
		wakeups.Look()
	}
	if got, err := s.GetRun(t.Context(), wakeup.RunKey); err != nil || got.ID != run.Run.ID {
		t.Errorf("a read: %v %v", got, err)
	}
	select {
	case line := <-said:
		t.Errorf("said again: %s", line)
	default:
	}
	disk.Fill(-1)
	if got := <-handled; got != run.Run.ID {
		t.Errorf("handled %s", got)
	}
	if line := <-said; !strings.Contains(line, "wakeups are taken again") {
		t.Error(line)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Doctor finds a full disk by a commit, which changes nothing.
func TestDoctor_FullDisk_IsFoundByAWrite(t *testing.T) {
	t.Parallel()
	s, disk := onDisk(t)
	l, err := lane.New(s, sqlitelane.NewTransport(s), nil)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := core.Open(t.Context(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close(context.Background()) }()
	writing := func(want string) {
		t.Helper()
		checks := doctor.Standard(rt, false)
		at := slices.IndexFunc(checks, func(c doctor.Check) bool { return c.Name == "writing" })
		detail, err := checks[at].Run(t.Context(), rt)
		if !strings.Contains(fmt.Sprint(detail, err), want) || (err == nil) == (want == "is full") {
			t.Errorf("%s, %v: want %q", detail, err, want)
		}
	}
	writing("a commit was written")
	disk.Fill(0)
	writing("is full")
	disk.Fill(-1)
	writing("a commit was written")
}

// A lane without a logger of its own logs by the runtime's.
func TestOpen_WithoutALogger_LogsByTheRuntimes(t *testing.T) {
	t.Parallel()
	for lanes, want := range map[*slog.Logger]string{nil: "runtime", slog.New(slog.DiscardHandler): ""} {
		l, err := sqlitelane.Open(t.Context(), newPath(t), &sqlitelane.Options{Logger: lanes})
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		rt, err := core.Open(t.Context(), l, &core.Options{Logger: slog.New(slog.NewTextHandler(&said, nil)).With("of", "runtime")})
		if err != nil {
			t.Fatal(err)
		}
		l.Transport.(*sqlitelane.Transport).Log().Info("wakeups are taken again")
		if err := rt.Close(t.Context()); err != nil || strings.Contains(said.String(), "of=runtime") != (want != "") {
			t.Errorf("%v: said %q, want %q", err, &said, want)
		}
	}
}

// A copy for which there is no room names its own disk, not the file's, leaves nothing, and works when there is room.
func TestCopyTo_NoRoomForTheCopy_NamesIt(t *testing.T) {
	t.Parallel()
	s, disk := onDisk(t)
	_, err := s.AppendRunEvents(t.Context(), lanetest.NewFactory("default").Creation(t, noon, lanetest.RunOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	disk.Fill(0)
	target := newPath(t)
	_, err = s.CopyTo(t.Context(), target)
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrStorageUnavailable || !e.Retryable || !strings.Contains(e.Message, "the disk of "+target) ||
		!strings.Contains(e.Message, "is full") {
		t.Errorf("%+v", e)
	}
	if left, err := os.ReadDir(filepath.Dir(target)); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	disk.Fill(-1)
	if size, err := s.CopyTo(t.Context(), target); err != nil || size == 0 {
		t.Error(size, err)
	}
}
