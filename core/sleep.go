package core

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/runlane/runlane-go"
)

// shortSleep is the longest sleep inside an attempt: a suspension and another start would cost more.
const shortSleep = time.Second

var errNoPause = errors.New("no pause")

// Sleep implements runlane.StepHost. The first attempt that calls it fixes its end.
func (x *execution) Sleep(ctx context.Context, name string, d time.Duration) error {
	if d > runlane.MaxReleaseDelay {
		return stepFault(x, name, "sleep at most "+runlane.FormatDuration(runlane.MaxReleaseDelay),
			"would sleep for %s", d)
	}
	call := runlane.StepCall{Name: name, Kind: runlane.StepKindSleep}
	kept, err := x.Remember(ctx, call, func(context.Context) (json.RawMessage, error) {
		if d <= 0 {
			return nil, errNoPause
		}
		return json.Marshal(ceilMillis(x.rt.now().Add(d)).UTC())
	})
	if errors.Is(err, errNoPause) {
		return nil
	}
	var until time.Time
	if err == nil {
		err = decodeRecord(x, kept, &until)
	}
	if err != nil {
		return err
	}
	switch left := until.Sub(x.rt.now()); {
	case left <= 0:
		return nil
	case left <= shortSleep && x.rt.realTime && x.hasTime(left):
		return x.sleepHere(ctx, left)
	default:
		w := &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingTime}, Until: until}
		return x.suspend(name, "sleeps: "+name, w, -1)
	}
}

// sleepHere sleeps within the attempt, until either ends.
func (x *execution) sleepHere(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-x.handling.Done():
		return context.Cause(x.handling)
	}
}

func (x *execution) hasTime(d time.Duration) bool {
	end, limited := x.handling.Deadline()
	return !limited || time.Until(end) > d
}
