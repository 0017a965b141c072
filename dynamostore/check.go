package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

var _ lane.Checker = (*Store)(nil)

// checkPosition is the key behind which a check resumes.
type checkPosition struct {
	PK string `json:"p"`
	SK string `json:"s"`
}

// Check implements lane.Checker: the invariants of docs/layout.md on every run and owner of an environment. It scans the table,
// so it is for tests and for diagnosis. A run that changes while it is checked may be reported wrongly: check what stands still,
// or twice.
func (s *Store) Check(ctx context.Context, q *lane.PageQuery) (*runlane.Page[lane.Violation], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	scope := "check " + q.Environment.Name()
	var after checkPosition
	if err := openCursor(q.After, scope, &after); err != nil {
		return nil, err
	}
	var behind item
	if after.PK != "" {
		behind = itemKey(after.PK, after.SK)
	}
	items, next, err := s.db.Scan(ctx, "check", behind, limit)
	if err != nil {
		return nil, err
	}
	page := &runlane.Page[lane.Violation]{}
	for _, it := range items {
		if !strings.HasPrefix(textOf(it[attrPK]), q.Environment.Name()+":") {
			continue
		}
		if newer(it) {
			page.Items = append(page.Items, ofNewerFormat(it))
			continue
		}
		violations, err := s.checkItem(ctx, it)
		if err != nil {
			return nil, err
		}
		page.Items = append(page.Items, violations...)
	}
	if next != nil {
		page.Next = sealCursor(scope, checkPosition{textOf(next[attrPK]), textOf(next[attrSK])})
	}
	return page, nil
}

func (s *Store) checkItem(ctx context.Context, it item) ([]lane.Violation, error) {
	switch textOf(it[attrSK]) {
	case skRun:
		return s.checkRun(ctx, it)
	case skOwner:
		return s.checkOwner(ctx, it)
	default:
		if strings.Contains(textOf(it[attrPK]), ":slot:") {
			return s.checkSlot(ctx, it)
		}
		return nil, nil
	}
}

// Names of the invariants.
const (
	ruleMembership = "a run is in due exactly while it is active, and in done exactly when it is finished"
	ruleMarker     = "a marker is never later than the moment somebody must look"
	ruleLatest     = "only a queued or scheduled run has a delivery row to claim"
	ruleLease      = "only a running run is leased"
	ruleBulk       = "what the run item announces is there"
	ruleOwner      = "the owner of an active run's key is that run"
	ruleSlot       = "a slot is held by the run that names it"
	ruleShard      = "index rows lie in shards that readers read"
	ruleFormat     = "what is stored is of a format that this program reads"
)

func ofNewerFormat(it item) lane.Violation {
	key, _ := parseRunPK(textOf(it[attrPK]))
	v := &violations{key: key}
	v.add(ruleFormat, "%s %s is of format %d, this program reads up to %d", textOf(it[attrPK]), textOf(it[attrSK]), number(it[attrFormat]), format)
	return v.list[0]
}

type violations struct {
	key  lane.RunKey
	list []lane.Violation
}

func (v *violations) add(rule, format string, args ...any) {
	v.list = append(v.list, lane.Violation{RunKey: v.key, Rule: rule, Detail: fmt.Sprintf(format, args...)})
}

func (s *Store) checkRun(ctx context.Context, raw item) ([]lane.Violation, error) {
	r, err := unmarshalRun(raw)
	if err != nil {
		return nil, err
	}
	v := &violations{key: r.key()}
	if !r.status().Known() {
		v.add(ruleFormat, "status %q is none that this program knows", r.Status)
		return v.list, nil
	}
	running := r.status() == runlane.StatusRunning || r.status() == runlane.StatusCancellationRequested
	latest := r.status() == runlane.StatusQueued || r.status() == runlane.StatusScheduled
	inDue, inDone := r.DueP != "" && r.DueA != "", r.DoneP != "" && r.DoneA != ""
	if inDue == r.status().Terminal() || inDone != r.status().Terminal() {
		v.add(ruleMembership, "%s, in due: %t, in done: %t", r.Status, inDue, inDone)
	}
	if err := s.checkShards(ctx, r, v); err != nil {
		return nil, err
	}
	if r.DeliveryLog != 0 && !latest {
		v.add(ruleLatest, "a %s run names the row %s", r.Status, r.deliveryID())
	}
	if (r.LeaseToken != "") != running {
		v.add(ruleLease, "%s, leased: %t", r.Status, r.LeaseToken != "")
	}
	if inDue && r.status().Active() {
		if err := s.checkMarker(ctx, r, v); err != nil {
			return nil, err
		}
	}
	for sk, p := range map[string]place{skPayload: r.PayloadPlace, skOutput: r.OutputPlace} {
		if !p.separate() {
			continue
		}
		bulk, err := s.db.Get(ctx, "check", r.PK, sk)
		if err != nil {
			return nil, err
		}
		if bulk == nil {
			v.add(ruleBulk, "the item %s is missing", sk)
		}
	}
	if r.status().Active() {
		if err := s.checkKeys(ctx, r, v); err != nil {
			return nil, err
		}
	}
	if running && r.Slot != 0 {
		raw, err := s.db.Get(ctx, "check", r.slot().PK, r.slot().SK)
		if err != nil {
			return nil, err
		}
		if holder := textOf(raw["ru"]); holder != string(v.key.RunID) {
			v.add(ruleSlot, "slot %d is held by %q", r.Slot-1, holder)
		}
	}
	return v.list, nil
}

// checkShards finds index rows that no walk meets. A shard need not be the one that writers choose today: their number has grown.
func (s *Store) checkShards(ctx context.Context, r *runItem, v *violations) error {
	shards, err := s.shardCounts(ctx, v.key.Environment)
	if err != nil {
		return err
	}
	for _, partition := range []string{r.DueP, r.DoneP} {
		if partition == "" {
			continue
		}
		shard, err := strconv.Atoi(partition[strings.LastIndexByte(partition, ':')+1:])
		if err != nil || shard < 0 || shard >= shards.Read {
			v.add(ruleShard, "%s, of %d shards", partition, shards.Read)
		}
	}
	return nil
}

// checkMarker compares the marker with the next moment somebody must look.
func (s *Store) checkMarker(ctx context.Context, r *runItem, v *violations) error {
	m, queue, ok := r.due().parse()
	if !ok || string(queue) != r.Queue {
		v.add(ruleMarker, "the marker %v cannot be read, or names another queue", r.due())
		return nil
	}
	var row *delivery
	if r.DeliveryLog != 0 {
		var err error
		if row, err = s.readDelivery(ctx, r.key(), r.DeliveryLog, r.DeliveryIndex); err != nil {
			return err
		}
		if row == nil {
			v.add(ruleLatest, "the row %s is missing", r.deliveryID())
		}
	}
	dead := row != nil && row.status() == lane.OutboxDeadLettered
	if (m.kind == deadLetter) != dead {
		v.add(ruleMarker, "the marker is of kind %s, the delivery dead-lettered: %t", m.kind, dead)
	}
	seen := look(r, row, -1, false) // an instant before everything: all is still to come
	need := max(seen.marker.at, seen.since)
	if m.kind == slotless {
		if latest := r.status() != runlane.StatusRunning && r.status() != runlane.StatusCancellationRequested; !latest {
			v.add(ruleMarker, "a %s run waits for a slot", r.Status)
		}
		if _, hash, _ := cutPartition(r.DueA); hash != r.partition().hash {
			v.add(ruleMarker, "the marker %v is of another partition", r.due())
		}
		return nil
	}
	if !dead && m.at > need {
		v.add(ruleMarker, "the marker is at %v, %s must be looked at by %v", m.at.time(), r.Status, need.time())
	}
	return nil
}

func (s *Store) checkKeys(ctx context.Context, r *runItem, v *violations) error {
	owners := ownersOf(r.run(), "")
	for _, owner := range owners {
		raw, err := s.db.Get(ctx, "check", owner.PK, skOwner)
		if err != nil {
			return err
		}
		if holder := textOf(raw["ru"]); holder != string(owner.Run) {
			v.add(ruleOwner, "the owner %s names %q", owner.PK, holder)
		}
	}
	return nil
}

// checkSlot finds a held slot whose run does not name it: nobody would free it. A reservation is freed by time.
func (s *Store) checkSlot(ctx context.Context, raw item) ([]lane.Violation, error) {
	var slot slotItem
	if err := unmarshalItem(raw, &slot); err != nil {
		return nil, err
	}
	environment, _, _ := strings.Cut(slot.PK, ":")
	v := &violations{key: lane.RunKey{Environment: runlane.Environment(environment), RunID: slot.Run}}
	r, err := s.readRun(ctx, v.key)
	if errors.Is(err, errNewer) {
		return nil, nil // said of the run itself
	}
	if err != nil {
		return nil, err
	}
	if slot.Until == 0 && (r == nil || r.Slot != slot.number()+1 || r.partition().pk() != slot.PK) {
		v.add(ruleSlot, "slot %d of %s is held by a run that does not name it", slot.number(), slot.PK)
	}
	return v.list, nil
}

// checkOwner finds an owner that names a run with other keys. A run that is gone or finished is no fault: owners are resolved
// when somebody wants the key.
func (s *Store) checkOwner(ctx context.Context, raw item) ([]lane.Violation, error) {
	var owner ownerItem
	if err := unmarshalItem(raw, &owner); err != nil {
		return nil, err
	}
	r, err := s.readRun(ctx, owner.runKey())
	if errors.Is(err, errNewer) {
		return nil, nil
	}
	if err != nil || r == nil {
		return nil, err
	}
	for _, own := range ownersOf(r.run(), "") {
		if own.PK == owner.PK {
			return nil, nil
		}
	}
	v := &violations{key: r.key()}
	v.add(ruleOwner, "the owner %s names a run that never had the key", owner.PK)
	return v.list, nil
}
