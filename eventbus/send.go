package eventbus

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go"
)

// batch is the most entries of one request, to EventBridge and to SQS. Events have no payload, so ten are far below the
// limit of 256 KiB.
const batch = 10

const (
	// answerTime is how long the bus has for a request. Without a limit a bus that does not answer would use up every
	// invocation, and nothing would be set aside before the stream forgets it.
	answerTime = 10 * time.Second
	// keepTime is left of an invocation for setting events aside.
	keepTime = 15 * time.Second
)

// refusal is why the bus did not take an event.
type refusal struct {
	code, message string
	passes        bool // by itself, soon
}

// Handle sends a batch of stream records, or of messages that keep refused ones. What is not done is reported in the
// response; the error is only for an event of another kind.
func (s *Sender) Handle(ctx context.Context, batch json.RawMessage) (events.SQSEventResponse, error) {
	var kind struct {
		Records []struct {
			EventSource string `json:"eventSource"`
		}
	}
	done := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	if err := json.Unmarshal(batch, &kind); err != nil || len(kind.Records) == 0 {
		return done, &runlane.Error{
			Code: runlane.ErrValidationFailed, Message: "the function was invoked with no batch of records", Cause: err,
			Hint: "invoke it by its event source mappings",
		}
	}
	send := s.sendRecords
	if kind.Records[0].EventSource == "aws:sqs" {
		send = s.sendMessages
	}
	failed, err := send(ctx, batch)
	for _, id := range failed {
		done.BatchItemFailures = append(done.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
	}
	return done, err
}

// sendRecords sends records of the stream up to the first that has to wait, whose number it returns: Lambda repeats the
// batch from there.
func (s *Sender) sendRecords(ctx context.Context, text []byte) (failed []string, err error) {
	var in events.DynamoDBEvent
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	var list []*event
	for i := range in.Records {
		if e := s.eventOf(in.Records[i].Change.SequenceNumber, &in.Records[i]); e != nil {
			list = append(list, e)
		}
	}
	for len(list) > 0 {
		part := nextPart(list)
		list = list[len(part):]
		refusals := s.put(ctx, part)
		waits := slices.IndexFunc(part, func(e *event) bool { return refusals[e] != nil && refusals[e].holds(e) })
		if waits < 0 {
			waits = len(part)
		}
		aside := slices.DeleteFunc(slices.Clone(part[:waits]), func(e *event) bool { return refusals[e] == nil })
		if err := s.setAside(ctx, aside); err != nil {
			s.logger.ErrorContext(ctx, "events that the bus refused could not be kept; the stream keeps them",
				"count", len(aside), "error", err)
			return []string{aside[0].id}, nil
		}
		if waits < len(part) {
			return []string{part[waits].id}, nil
		}
		if until, ok := ctx.Deadline(); ok && len(list) > 0 && time.Until(until) < answerTime+keepTime {
			return []string{list[0].id}, nil
		}
	}
	return nil, nil
}

// nextPart returns the events of the next request. It has a run once: the bus could take the later event and refuse the
// earlier one.
func nextPart(list []*event) []*event {
	has := map[string]bool{}
	for i, e := range list {
		if i == batch || has[e.key] {
			return list[:i]
		}
		has[e.key] = true
	}
	return list
}

// holds reports whether the record waits in the stream, with everything behind it in its shard.
func (r *refusal) holds(e *event) bool {
	return r.passes && time.Since(e.record.Change.ApproximateCreationDateTime.Time) < Patience
}

// sendMessages sends events that were set aside and returns the messages that stay in their queue.
func (s *Sender) sendMessages(ctx context.Context, text []byte) (failed []string, err error) {
	var in events.SQSEvent
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	var list []*event
	for i := range in.Records {
		message := &in.Records[i]
		var record events.DynamoDBEventRecord
		err := json.Unmarshal([]byte(message.Body), &record)
		if err != nil || record.EventName == "" { // a note of lost records, from the queue of dead letters
			s.logger.ErrorContext(ctx, "a message holds no event", "message_id", message.MessageId, "error", err)
			failed = append(failed, message.MessageId)
		} else if e := s.eventOf(message.MessageId, &record); e != nil {
			list = append(list, e)
		}
	}
	for part := range slices.Chunk(list, batch) {
		refusals := s.put(ctx, part)
		for _, e := range part {
			if refusals[e] != nil {
				failed = append(failed, e.id)
			}
		}
	}
	return failed, nil
}

// put sends events and returns what was refused. EventBridge answers 200 for a request of which it took nothing.
func (s *Sender) put(ctx context.Context, list []*event) map[*event]*refusal {
	refused := map[*event]*refusal{}
	var sent []*event
	in := &eventbridge.PutEventsInput{}
	for _, e := range list {
		if e.fault != nil {
			refused[e] = &refusal{code: string(runlane.CodeOf(e.fault)), message: e.fault.Error()}
			continue
		}
		sent, in.Entries = append(sent, e), append(in.Entries, e.put)
	}
	if len(sent) > 0 {
		limited, stop := context.WithTimeout(ctx, answerTime)
		out, err := s.bus.PutEvents(limited, in)
		stop()
		for i, e := range sent {
			if r := refusalOf(i, out, err); r != nil {
				refused[e] = r
			}
		}
	}
	for e, r := range refused {
		s.logger.WarnContext(ctx, "the bus did not take an event, which is sent again", "record", e.id,
			"key", e.key, "code", r.code, "error", r.message)
	}
	return refused
}

func refusalOf(i int, out *eventbridge.PutEventsOutput, err error) *refusal {
	switch {
	case err != nil:
		return &refusal{message: err.Error(), passes: true}
	case i >= len(out.Entries):
		return &refusal{message: "the answer has no entry for it", passes: true}
	case aws.ToString(out.Entries[i].ErrorCode) == "":
		return nil
	}
	r := &refusal{code: aws.ToString(out.Entries[i].ErrorCode), message: aws.ToString(out.Entries[i].ErrorMessage)}
	r.passes = r.code == "InternalFailure" || r.code == "ThrottlingException"
	return r
}

// setAside puts at most ten refused events into the queue from which they are sent again.
func (s *Sender) setAside(ctx context.Context, list []*event) error {
	if len(list) == 0 {
		return nil
	}
	in := &sqs.SendMessageBatchInput{QueueUrl: aws.String(s.retries)}
	for i, e := range list {
		body, err := e.body()
		if err != nil {
			return err
		}
		in.Entries = append(in.Entries, sqstypes.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(body),
		})
	}
	out, err := s.queue.SendMessageBatch(ctx, in)
	if err == nil && len(out.Failed) > 0 {
		err = &runlane.Error{
			Code: runlane.ErrTransportUnavailable, Message: "SQS refused " + strconv.Itoa(len(out.Failed)) + " events",
			Retryable: true,
		}
	}
	return err
}
