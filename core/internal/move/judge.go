package move

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/fail"
	"github.com/runlane/runlane-go/lane"
)

// pass is the round in which a line is written. A key becomes free when a run that no longer owns it is written, so
// these runs precede the owner. The order in the file does not help, because a clock may have been set back.
type pass uint8

const (
	passNone   pass = iota
	passBefore      // tasks, schedules, and runs that ended and own no idempotency key
	passOwners      // runs that ended and own one
	passActive      // runs that are active: they own all their keys
	passFlows       // flows, which need their runs
	passes
)

// filePlan is the content of a valid file.
type filePlan struct {
	environment runlane.Environment
	ordered     []runlane.QueueName // in the source environment
	last        end
	passes      []pass                  // of each line
	callers     map[runlane.RunID]int64 // active runs that wait for children, with their sequences
}

// judge validates a whole file and folds every history.
type judge struct {
	plan   filePlan
	have   end
	format int
	ended  bool
	limits lane.Storage               // checks sizes
	seen   map[string]bool            // ids of each kind
	owners map[ownedKey]runlane.RunID // of idempotency and singleton keys
}

type ownedKey struct {
	kind runlane.ConflictKind
	task runlane.TaskID
	key  string
}

// Check validates a file as Import does before it writes, and returns its environment.
func Check(from io.Reader) (runlane.Environment, error) {
	plan, err := judgeFile(from, nil)
	if err != nil {
		return "", err
	}
	return plan.environment, nil
}

func judgeFile(from io.Reader, limits lane.Storage) (*filePlan, error) {
	j := &judge{limits: limits, seen: map[string]bool{}, owners: map[ownedKey]runlane.RunID{}}
	j.plan.callers = map[runlane.RunID]int64{}
	sum := sha256.New()
	err := eachLine(from, sum, nil, func(l *line) error {
		if l.End != nil {
			j.have.SHA256 = hex.EncodeToString(sum.Sum(nil))
		}
		pass, err := j.line(l)
		j.plan.passes = append(j.plan.passes, pass)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !j.ended:
		return nil, badImport(nil, "the file was cut off: its last line is missing")
	case j.plan.last != j.have:
		return nil, badImport(nil, "the file was changed: its lines do not match the sum in its last line")
	}
	return &j.plan, nil
}

func badImport(cause error, format string, args ...any) error {
	what, hint := fmt.Sprintf(format, args...), "give a whole file that \"runlane export\" of this version, or of an older one, wrote"
	if e, ok := fail.As(cause); ok {
		what += ": " + e.Message
		if e.Hint != "" {
			hint = e.Hint
		}
	}
	return &runlane.Error{
		Code: runlane.ErrValidationFailed, Message: what + "; nothing was written", Hint: hint, Cause: cause,
	}
}

func (j *judge) line(l *line) (pass, error) {
	number := len(j.plan.passes) + 1
	switch {
	case j.ended:
		return passNone, badImport(nil, "something follows the last line")
	case (number == 1) != (l.Head != nil):
		return passNone, badImport(nil, "the head has to be the first line, and only there")
	case l.fields() != 1:
		return passNone, badImport(nil, "line %d has no field that this version knows, or more than one", number)
	case l.Head != nil:
		return passNone, j.head(l.Head)
	case l.End != nil:
		j.ended, j.plan.last = true, *l.End
		return passNone, nil
	case l.Task != nil:
		return passBefore, j.task(l.Task)
	case l.Schedule != nil:
		return passBefore, j.schedule(l.Schedule)
	case l.Flow != nil && j.format < formatFlows:
		return passNone, badImport(nil, "line %d is a flow, but the file has format %d", number, j.format)
	case l.Flow != nil:
		return passFlows, j.flow(l.Flow)
	default:
		return j.run(l.Run)
	}
}

func (j *judge) head(h *head) error {
	if h.Format < formatRuns || h.Format > formatFlows {
		return badImport(
			nil, "the file is of format %d, this program reads %d to %d", h.Format, formatRuns, formatFlows)
	}
	j.format = h.Format
	j.plan.environment, j.plan.ordered = runlane.Environment(h.Environment.Name()), h.Ordered
	return nil
}

func (j *judge) once(kind, id string) error {
	name := kind + " " + id
	if j.seen[name] {
		return badImport(nil, "the file has %s %q twice", kind, id)
	}
	j.seen[name] = true
	return nil
}

func (j *judge) task(record *runlane.TaskRecord) error {
	j.have.Tasks++
	put := lane.PutTaskCommand{Environment: j.plan.environment, Record: *record}
	if err := put.Validate(); err != nil {
		return badImport(err, "task %q cannot be kept", record.ID)
	}
	return j.once("task", string(record.ID))
}

func (j *judge) schedule(record *runlane.ScheduleRecord) error {
	j.have.Schedules++
	if err := newSchedule(j.plan.environment, record).Validate(); err != nil {
		return badImport(err, "schedule %q cannot be kept", record.ID)
	}
	return j.once("schedule", string(record.ID))
}

func (j *judge) run(r *movedRun) (pass, error) {
	j.have.Runs++
	run, err := r.fold(len(r.Events))
	switch {
	case err != nil:
		return passNone, badImport(err, "the history of run %q does not fold", r.ID)
	case run.ID != r.ID || run.Environment.Name() != j.plan.environment.Name():
		return passNone, badImport(nil, "run %q has the history of another", r.ID)
	case run.Lease.Token != "":
		return passNone, badImport(nil, "an attempt executes run %q", r.ID)
	case run.Status.Active() && run.IdempotencyKey != "" && !r.Owns:
		return passNone, badImport(nil, "run %q is active and does not own its idempotency key", r.ID)
	case r.steps() > runlane.MaxSteps:
		return passNone, badImport(
			nil, "run %q remembers %d things, more than %d", r.ID, r.steps(), runlane.MaxSteps)
	}
	if err := j.writable(r, run); err != nil {
		return passNone, badImport(err, "run %q cannot be kept", r.ID)
	}
	if err := j.once("run", string(r.ID)); err != nil {
		return passNone, err
	}
	if run.Waiting.Has(runlane.WaitingChildren) {
		j.plan.callers[r.ID] = run.EventSequence
	}
	return j.owns(r, run)
}

// writable checks every command that will write the run.
func (j *judge) writable(r *movedRun, run *runlane.Run) error {
	for _, err := range []error{
		run.TaskID.Validate(),
		run.Queue.Validate(),
		runlane.ValidateKey("idempotency key", run.IdempotencyKey),
		runlane.ValidateKey("singleton key", run.SingletonKey),
		runlane.ValidateKey("concurrency key", run.ConcurrencyKey),
	} {
		if err != nil {
			return err
		}
	}
	for have := 0; have < len(r.Events); {
		part, err := r.part(have, r.nextPart(have))
		if err == nil {
			err = part.Validate()
		}
		if err != nil {
			return err
		}
		have += len(part.Events)
	}
	for _, command := range r.keeps(j.plan.environment, run.CreatedAt) {
		if err := command.Validate(); err != nil {
			return err
		}
	}
	return j.checkSizes(r, run)
}

// checkSizes refuses bodies that are too large for this storage, before the import begins.
func (j *judge) checkSizes(r *movedRun, run *runlane.Run) error {
	if j.limits == nil {
		return nil
	}
	err := j.limits.CheckPayload(r.ID, run.Payload)
	if err == nil {
		err = j.limits.CheckOutput(r.ID, run.Output)
	}
	for i := 0; err == nil && i < len(r.Records); i++ { // a record may be as large as a payload
		err = j.limits.CheckPayload(r.ID, r.Records[i].Result)
	}
	return err
}

// owns refuses two owners of a key and returns the pass of the run.
func (j *judge) owns(r *movedRun, run *runlane.Run) (pass, error) {
	pass := passBefore
	var keys []ownedKey
	if run.IdempotencyKey != "" && r.Owns {
		pass = passOwners
		keys = append(keys, ownedKey{runlane.ConflictIdempotencyKey, run.TaskID, run.IdempotencyKey})
	}
	if run.Status.Active() {
		pass = passActive
		if run.SingletonKey != "" {
			keys = append(keys, ownedKey{runlane.ConflictSingletonKey, run.TaskID, run.SingletonKey})
		}
	}
	for _, key := range keys {
		if other, taken := j.owners[key]; taken {
			return passNone, badImport(nil, "runs %q and %q own the same key (%s)", other, r.ID, key.kind)
		}
		j.owners[key] = r.ID
	}
	return pass, nil
}
