package runlanetest

import (
	"compress/flate"
	"context"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Limits of a table on DynamoDB for one compressed payload and output. A test that passes here should not fail there.
const (
	maxStoredPayload = 350 << 10
	maxStoredOutput  = 256 << 10
)

// tableLimits is a storage in memory that refuses payloads and outputs too large for a table. It compresses
// differently, so results near the limit may differ.
type tableLimits struct{ lane.Storage }

// Unwrap lets lane.As find the abilities of the storage.
func (s tableLimits) Unwrap() lane.Storage { return s.Storage }

// AppendRunEvents implements lane.Storage.
func (s tableLimits) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	for i := range c.Events {
		if created, ok := c.Events[i].Body.(*runlane.RunCreated); ok {
			if err := tooLarge("payload", created.Payload, maxStoredPayload, c.Events[i].RunID); err != nil {
				return nil, err
			}
		}
	}
	return s.Storage.AppendRunEvents(ctx, c)
}

// KeepRecord implements lane.Storage.
func (s tableLimits) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	if err := tooLarge("result of a step", c.Record.Result, maxStoredPayload, c.RunID); err != nil {
		return nil, err
	}
	return s.Storage.KeepRecord(ctx, c)
}

// CheckOutput implements lane.Storage.
func (s tableLimits) CheckOutput(run runlane.RunID, output []byte) error {
	return tooLarge("output", output, maxStoredOutput, run)
}

// CheckPayload implements lane.Storage.
func (s tableLimits) CheckPayload(run runlane.RunID, payload []byte) error {
	return tooLarge("payload", payload, maxStoredPayload, run)
}

func tooLarge(what string, b []byte, limit int, run runlane.RunID) error {
	if len(b) <= limit {
		return nil
	}
	var size counter
	w, err := flate.NewWriter(&size, flate.DefaultCompression)
	if err == nil {
		_, err = w.Write(b)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil && int(size) <= limit {
		return nil
	}
	return &runlane.Error{
		Code:  runlane.ErrValidationFailed,
		RunID: run,
		Message: fmt.Sprintf(
			"%s has %d bytes, %d compressed: a table on DynamoDB holds %d",
			what,
			len(b),
			int(size),
			limit,
		),
		Hint: "store the bulk elsewhere and pass a reference",
	}
}

type counter int

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
