package dynamostore

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// RelayAttribute and RelayValue mark log items with a row that starts pending and due, for the stream's filter.
const (
	RelayAttribute = "relay"
	RelayValue     = "1"
)

// StreamRecord is the part of a stream record that the relay uses.
type StreamRecord struct {
	Environment runlane.Environment
	RunID       runlane.RunID
	OutboxIDs   []string // rows that started pending and due
}

// ParseStreamImage decodes the new image of a stream record. It is only a hint: records of one transaction arrive apart
// and out of order, and a publisher claims the rows first. An item other than a log gives no IDs; an unreadable one is
// runlane.ErrInvariantViolation.
func ParseStreamImage(image map[string]types.AttributeValue) (StreamRecord, error) {
	key, ok := rows.ParseRunPK(item.TextOf(image[item.PK]))
	if !ok || item.TextOf(image[RelayAttribute]) != RelayValue {
		return StreamRecord{Environment: key.Environment, RunID: key.RunID}, nil
	}
	record := StreamRecord{Environment: key.Environment, RunID: key.RunID}
	var log rows.Log
	if err := rows.Unmarshal(image, &log); err != nil {
		return record, err
	}
	first, err := log.First()
	if err != nil {
		return record, err
	}
	for i := range log.Deliveries {
		if log.Deliveries[i].State() == lane.OutboxPending {
			record.OutboxIDs = append(record.OutboxIDs, rows.OutboxID(key.RunID, first, i))
		}
	}
	return record, nil
}

// ParseStreamRun decodes the run in the new image of a stream record: without payload and output, and with the first
// 120 bytes of its failure's message. It is nil for other items, and for a run that had ended before and has now told
// its caller, flow or called runs. An unreadable run, or one of a newer program's format, is
// runlane.ErrInvariantViolation.
func ParseStreamRun(image map[string]types.AttributeValue) (*runlane.Run, error) {
	if _, ok := rows.ParseRunPK(item.TextOf(image[item.PK])); !ok || item.TextOf(image[item.SK]) != rows.RunSK {
		return nil, nil
	}
	run, err := rows.UnmarshalRun(image)
	if err != nil {
		return nil, err
	}
	if run.MustNotify() && !run.NotificationPending() {
		return nil, nil
	}
	return run.Projection(), nil
}

// DropStreamBytes removes payload and output from the image of a run, for what keeps or shows it.
func DropStreamBytes[Value any](image map[string]Value) {
	for _, name := range rows.ByteAttributes() {
		delete(image, name)
	}
}
