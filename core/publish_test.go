package core

import (
	"errors"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func TestJudgeOutcomes_CountsOnlyAMessagesOwnFailures(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	rt := &Runtime{world: (&World{Now: func() time.Time { return now }}).withDefaults()}
	failed := func(code runlane.ErrorCode, permanent bool) lane.PublishOutcome {
		return lane.PublishOutcome{Type: lane.PublishFailed, Failure: runlane.NewFailure(code, "x", nil), Permanent: permanent}
	}
	for _, c := range []struct {
		name     string
		attempts int // before
		age      time.Duration
		outcome  lane.PublishOutcome
		fails    error // of the operation
		want     string
		count    int
		next     time.Duration
	}{
		{"published", 3, 0, lane.PublishOutcome{Type: lane.Published}, nil, "published", 0, 0},
		{"its first failure", 0, 0, failed(runlane.ErrTransportPublishFailed, false), nil, "failed", 1, time.Second},
		{"its third failure", 2, 0, failed(runlane.ErrTransportPublishFailed, false), nil, "failed", 3, 4 * time.Second},
		{"its ninth failure", 8, 0, failed(runlane.ErrTransportPublishFailed, false), nil, "failed", 9, 256 * time.Second},
		{"its tenth failure", 9, 0, failed(runlane.ErrTransportPublishFailed, false), nil, "dead", 10, 0},
		{"it can never be accepted", 0, 0, failed(runlane.ErrTransportPublishFailed, true), nil, "dead", 1, 0},
		{"a failure without a code is its own", 0, 0, lane.PublishOutcome{Type: lane.PublishFailed}, nil, "failed", 1, time.Second},
		{"throttled when fresh", 9, 0, failed(runlane.ErrTransportUnavailable, false), nil, "failed", 9, time.Second},
		{"throttled after a minute", 9, time.Minute, failed(runlane.ErrTransportUnavailable, false), nil, "failed", 9, time.Minute},
		{"throttled for an hour", 9, time.Hour, failed(runlane.ErrTransportUnavailable, false), nil, "failed", 9, 5 * time.Minute},
		{"an outage", 9, 20 * time.Second, lane.PublishOutcome{}, runlane.ErrTransportUnavailable, "failed", 9, 20 * time.Second},
		{"refused as a whole", 9, 0, lane.PublishOutcome{}, runlane.ErrTransportPublishFailed, "failed", 9, time.Second},
		{"an error of no known kind", 9, 0, lane.PublishOutcome{}, errors.New("password is 1234"), "failed", 9, time.Second},
	} {
		rows := []lane.OutboxMessage{{
			OutboxRef: lane.OutboxRef{ID: "id", ClaimToken: "token"}, Attempts: c.attempts,
			Wakeup: lane.Wakeup{RequestedAt: now.Add(-c.age)},
		}}
		m := rt.judgeOutcomes(rows, []lane.PublishOutcome{c.outcome}, c.fails, nil)
		got, f := "published", lane.OutboxFailure{}
		switch {
		case len(m.failed) == 1:
			got, f = "failed", m.failed[0]
		case len(m.dead) == 1:
			got, f = "dead", m.dead[0]
		}
		if len(m.published)+len(m.failed)+len(m.dead) != 1 || got != c.want || f.Attempts != c.count {
			t.Errorf("%s: marks are %+v", c.name, m)
			continue
		}
		if c.next == 0 && !f.NextAvailableAt.IsZero() || c.next != 0 && f.NextAvailableAt.Sub(now) != c.next {
			t.Errorf("%s: next at %s", c.name, f.NextAvailableAt)
		}
		if got != "published" && (f.Failure.Code == "" || f.Failure.Message == "password is 1234" || m.err == nil) {
			t.Errorf("%s: failure is %+v, error %v", c.name, f.Failure, m.err)
		}
	}
}
