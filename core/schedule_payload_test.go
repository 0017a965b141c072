package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// A payload that no fire could store is found when the runtime opens, also where only the codec's bytes are too large.
func TestOpen_SchedulesPayloadDoesNotFitTheStorage_IsRefused(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask[string]("scheduled", nil)
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	codec := newCodec(t, nil, strings.Repeat("k", 20))
	for text, c := range map[string]struct {
		codec   runlane.Codec
		refused bool
	}{letters: {nil, false}, letters + letters: {nil, true}, letters[:61]: {codec, true}} {
		l := memlane.New()
		l.Storage = cramped{l.Storage}
		rt, err := core.Open(t.Context(), l, &core.Options{Codec: c.codec, Schedules: []runlane.Schedule{{
			ID: "nightly", When: runlane.Every(time.Hour), Call: task.With(text),
		}}})
		refused := runlane.CodeOf(err) == runlane.ErrConfigurationInvalid && strings.Contains(err.Error(), `"nightly"`)
		if refused != c.refused || !refused && err != nil {
			t.Errorf("%d bytes: %v", len(text), err)
		}
		if err == nil {
			_ = rt.Close(t.Context())
		}
	}
}
