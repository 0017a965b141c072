package record

import (
	"encoding/json"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// storedWakeup is a wakeup as JSON. Fields from newer programs are ignored.
type storedWakeup struct {
	Environment runlane.Environment `json:"e"`
	Run         runlane.RunID       `json:"r"`
	RequestedAt int64               `json:"t"`
	Trace       map[string]string   `json:"c,omitzero"`
}

// EncodeWakeup encodes a wakeup for the file.
func EncodeWakeup(w *lane.Wakeup) []byte {
	b, err := json.Marshal(storedWakeup{w.Environment, w.RunID, w.RequestedAt.UnixMilli(), w.TraceCarrier})
	if err != nil {
		panic(err) // strings and a number always marshal
	}
	return b
}

// DecodeWakeup is the inverse of EncodeWakeup.
func DecodeWakeup(queue runlane.QueueName, b []byte) (lane.Wakeup, error) {
	var s storedWakeup
	if err := json.Unmarshal(b, &s); err != nil {
		return lane.Wakeup{}, err
	}
	return lane.Wakeup{
		RunKey: lane.RunKey{Environment: s.Environment, RunID: s.Run}, Queue: queue,
		RequestedAt: time.UnixMilli(s.RequestedAt).UTC(), TraceCarrier: s.Trace,
	}, nil
}
