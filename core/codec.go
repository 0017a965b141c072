package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Encoded bodies are stored with a header: a mark, the length of the key's name, and the name. No JSON begins with the
// mark, so a runtime recognizes them even without a codec.
const (
	codedMark  = 1    // this version of the header
	codedMarks = 0x09 // all marks, also of later versions, are below the tab: no JSON begins there
	maxKeyName = 64
)

const unknownForm = "it is stored in a form that this version does not know"

// codedStorage wraps the storage's methods with the codec: core has plain bodies, the storage encoded ones. Without a
// codec everything passes unchanged, and encoded bodies cannot be read.
type codedStorage struct {
	lane.Storage

	codec runlane.Codec // nil: none
	check func(what string, body []byte) error
	ends  *ends // notified of committed ends; nil: none
}

// storage returns the lane's storage, wrapped by the codec (codedStorage), and by hooks and metrics (observe.go).
func (rt *Runtime) storage() lane.Storage { return rt.lane.Storage }

func (rt *Runtime) encode(codec runlane.Codec) {
	coded := *rt.lane
	rt.codec = &codedStorage{
		Storage: rt.lane.Storage,
		codec:   codec,
		check:   rt.checkSize,
		ends:    &rt.ends,
	}
	coded.Storage = rt.codec
	rt.lane = &coded
}

// Unwrap lets lane.As find the storage's abilities.
func (s *codedStorage) Unwrap() lane.Storage { return s.Storage }

func isCoded(stored []byte) bool { return len(stored) > 0 && stored[0] < codedMarks }

// codedHead puts the header before the codec's bytes.
func codedHead(key string, body []byte) ([]byte, error) {
	if key == "" || len(key) > maxKeyName || runlane.ValidateKey("key", key) != nil {
		return nil, &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: "the codec named a key that cannot be kept",
			Hint: fmt.Sprintf("return 1 to %d bytes of printable text from Encode", maxKeyName),
		}
	}
	stored := make([]byte, 0, 2+len(key)+len(body))
	stored = append(stored, codedMark, byte(len(key)))
	stored = append(stored, key...)
	return append(stored, body...), nil
}

// parseCoded is the inverse of codedHead; ok is false for other bytes.
func parseCoded(stored []byte) (key string, body []byte, ok bool) {
	if len(stored) < 2 || stored[0] != codedMark {
		return "", nil, false
	}
	length := int(stored[1])
	if length == 0 || length > maxKeyName || len(stored) < 2+length {
		return "", nil, false
	}
	key = string(stored[2 : 2+length])
	return key, stored[2+length:], runlane.ValidateKey("key", key) == nil
}

// encodeBody leaves a missing body missing.
func (s *codedStorage) encodeBody(
	ctx context.Context, of runlane.BodyRef, plain []byte,
) (stored []byte, key string, err error) {
	if len(plain) == 0 {
		return plain, "", nil
	}
	var body []byte
	fault := isolated(func() {
		if body, key, err = s.codec.Encode(ctx, of, plain); err != nil {
			err = codecFailed(ctx, of.RunID, err)
		}
	})
	if fault != nil {
		e := &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: "the codec panicked, or ended its goroutine, with these bytes",
			RunID:   of.RunID,
			Hint:    "look at the Encode of Options.Codec",
		}
		if fault.stack != nil {
			e.Meta = map[string]string{"stack": string(fault.stack)}
		}
		return nil, "", e
	}
	if err != nil {
		return nil, "", err
	}
	stored, err = codedHead(key, body)
	return stored, key, err
}

// decodeBody decodes a body. fault: this process can never open these bytes. err: it may succeed later.
func (s *codedStorage) decodeBody(
	ctx context.Context, of runlane.BodyRef, stored []byte,
) (plain []byte, key, fault string, err error) {
	body := stored
	switch coded := isCoded(stored); {
	case lane.IsReference(stored):
		return nil, "", "the lane keeps it apart from the run, and this process has no store of bodies", nil
	case len(stored) == 0 || !coded && s.codec == nil:
		return stored, "", "", nil
	case coded:
		var ok bool
		if key, body, ok = parseCoded(stored); !ok {
			return nil, "", unknownForm, nil
		}
	}
	if s.codec == nil {
		return nil, key, fmt.Sprintf("it is encoded with key %q, and this process has no codec", key), nil
	}
	broken := isolated(func() {
		plain, err = s.codec.Decode(ctx, of, key, body)
		switch {
		case err == nil:
		case errors.Is(err, runlane.ErrPayloadUnreadable):
			plain, fault, err = nil, messageOf(err), nil
		default:
			plain, err = nil, codecFailed(ctx, of.RunID, err)
		}
	})
	if broken != nil {
		return nil, key, "the codec panicked, or ended its goroutine, with these bytes", nil
	}
	return plain, key, fault, err
}

// codecFailed is the error of a codec that is temporarily out of order, such as when its key service is unreachable.
func codecFailed(ctx context.Context, run runlane.RunID, err error) error {
	if ctx.Err() != nil {
		return cancelled(ctx, run)
	}
	if e, ok := asError(err); ok {
		return safeError(e)
	}
	return &runlane.Error{
		Code:      runlane.ErrStorageUnavailable,
		Message:   "the codec failed",
		RunID:     run,
		Hint:      "the cause is the codec's own error",
		Retryable: true,
		Cause:     safeCause(err),
	}
}

// open decodes a run's bodies.
func (s *codedStorage) open(ctx context.Context, run *runlane.Run) (err error) {
	if run == nil || s.codec == nil && !isCoded(run.Payload) && !isCoded(run.Output) {
		return nil
	}
	sealed := runlane.Sealed{}
	of := runlane.BodyRef{Environment: runlane.Environment(run.Environment.Name()), RunID: run.ID, TaskID: run.TaskID}
	if run.Sealed != nil { // kept apart
		sealed = *run.Sealed
	}
	if sealed.PayloadFault == "" {
		sealed.PayloadApart = apartOr(run.Payload, sealed.PayloadApart)
		if run.Payload, sealed.PayloadKey, sealed.PayloadFault, err = s.decodeBody(ctx, of, run.Payload); err != nil {
			return err
		}
	}
	of.TaskID, of.Output = "", true
	if sealed.OutputFault == "" {
		sealed.OutputApart = apartOr(run.Output, sealed.OutputApart)
		run.Output, sealed.OutputKey, sealed.OutputFault, err = s.decodeBody(ctx, of, run.Output)
	}
	if sealed != (runlane.Sealed{}) {
		run.Sealed = &sealed
	}
	return err
}

// fill reads the bodies of a run that was read without those kept apart.
func (s *codedStorage) fill(ctx context.Context, run *runlane.Run) error {
	below, ok := s.Storage.(*bodyStorage)
	if !ok || run.Sealed == nil {
		return nil
	}
	payload, output := run.Sealed.PayloadApart, run.Sealed.OutputApart
	read := runlane.Run{Environment: run.Environment, ID: run.ID, TaskID: run.TaskID}
	if payload.Bytes > 0 {
		read.Payload = lane.Reference{At: run.CreatedAt.UnixMilli(), BodyApart: payload}.Stored()
	}
	if output.Bytes > 0 {
		read.Output = lane.Reference{At: run.CreatedAt.UnixMilli(), BodyApart: output}.Stored()
	}
	_, err := below.whole(ctx, &read, nil)
	if err == nil {
		err = s.open(ctx, &read)
	}
	if err != nil || read.Sealed == nil {
		return err
	}
	if payload.Bytes > 0 {
		run.Payload = read.Payload
		run.Sealed.PayloadKey, run.Sealed.PayloadFault = read.Sealed.PayloadKey, read.Sealed.PayloadFault
	}
	if output.Bytes > 0 {
		run.Output = read.Output
		run.Sealed.OutputKey, run.Sealed.OutputFault = read.Sealed.OutputKey, read.Sealed.OutputFault
	}
	return nil
}

// apartOr describes a body that a process without the store of bodies has read.
func apartOr(stored []byte, about runlane.BodyApart) runlane.BodyApart {
	if r, ok := lane.ParseReference(stored); ok {
		return r.BodyApart
	}
	return about
}

func (s *codedStorage) opened(ctx context.Context, run *runlane.Run, err error) (*runlane.Run, error) {
	if err == nil {
		err = s.open(ctx, run)
	}
	if err != nil {
		return nil, err
	}
	return run, nil
}

func (s *codedStorage) GetRun(ctx context.Context, key lane.RunKey) (*runlane.Run, error) {
	run, err := s.Storage.GetRun(ctx, key)
	return s.opened(ctx, run, err)
}

func (s *codedStorage) GetRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	runs, err := s.Storage.GetRuns(ctx, q)
	if err != nil || q.WithoutPayload {
		return runs, err
	}
	for _, run := range runs {
		if err := s.open(ctx, run); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

func (s *codedStorage) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	run, err := s.Storage.GetRunByIdempotencyKey(ctx, key)
	return s.opened(ctx, run, err)
}

func (s *codedStorage) GetRunBySingletonKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	run, err := s.Storage.GetRunBySingletonKey(ctx, key)
	return s.opened(ctx, run, err)
}

func (s *codedStorage) InspectRun(ctx context.Context, q *lane.InspectQuery) (*lane.Inspection, error) {
	seen, err := s.Storage.InspectRun(ctx, q)
	if err == nil {
		err = s.open(ctx, seen.Run)
	}
	if err != nil {
		return nil, err
	}
	return seen, nil
}

// ListRunEvents leaves out bodies that cannot be opened; the run has the reason.
func (s *codedStorage) ListRunEvents(
	ctx context.Context, q *lane.EventQuery,
) (*runlane.Page[runlane.EventRecord], error) {
	page, err := s.Storage.ListRunEvents(ctx, q)
	if err != nil {
		return nil, err
	}
	of := runlane.BodyRef{Environment: runlane.Environment(q.Environment.Name()), RunID: q.RunID}
	for i := range page.Items {
		switch body := page.Items[i].Body.(type) {
		case *runlane.RunCreated:
			of.TaskID, of.Output = body.TaskID, false
			body.Payload, _, _, err = s.decodeBody(ctx, of, body.Payload)
		case *runlane.RunSucceeded:
			of.TaskID, of.Output = "", true
			body.Output, _, _, err = s.decodeBody(ctx, of, body.Output)
		default: // the others have no bytes
		}
		if err != nil {
			return nil, err
		}
	}
	return page, nil
}
