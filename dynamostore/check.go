package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

type checkPosition struct {
	PK string `json:"p"`
	SK string `json:"s"`
}

// Check implements lane.Storage: it checks the invariants of docs/internals/layout.md for the runs and owners of an
// environment. It scans the table, so it is for tests and diagnosis. A run that changes meanwhile may be reported
// wrongly: check while nothing writes, or twice.
func (s *Store) Check(ctx context.Context, q *lane.PageQuery) (*runlane.Page[lane.Violation], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	scope := "check " + q.Environment.Name()
	var after checkPosition
	if err := rows.OpenCursor(q.After, scope, &after); err != nil {
		return nil, err
	}
	var behind item.Item
	if after.PK != "" {
		behind = item.Key(after.PK, after.SK)
	}
	items, next, err := s.db.Scan(ctx, "check", behind, limit)
	if err != nil {
		return nil, err
	}
	page := &runlane.Page[lane.Violation]{}
	for _, it := range items {
		if !strings.HasPrefix(item.TextOf(it[item.PK]), q.Environment.Name()+":") {
			continue
		}
		if rows.Newer(it) {
			page.Items = append(page.Items, newerFormatViolation(it))
			continue
		}
		violations, err := s.checkItem(ctx, it)
		if err != nil {
			return nil, err
		}
		page.Items = append(page.Items, violations...)
	}
	if next != nil {
		page.Next = rows.SealCursor(scope, checkPosition{item.TextOf(next[item.PK]), item.TextOf(next[item.SK])})
	}
	return page, nil
}

func (s *Store) checkItem(ctx context.Context, it item.Item) ([]lane.Violation, error) {
	switch item.TextOf(it[item.SK]) {
	case rows.RunSK:
		return s.checkRun(ctx, it)
	case rows.OwnerSK:
		return s.checkOwner(ctx, it)
	default:
		if strings.Contains(item.TextOf(it[item.PK]), ":slot:") {
			return s.checkSlot(ctx, it)
		}
		return nil, nil
	}
}

const (
	ruleMembership = "a run is in due exactly while it is active, and in done exactly when it is finished"
	ruleMarker     = "a marker is never later than the time at which its run needs inspection"
	ruleLatest     = "only a queued or scheduled run has a delivery row to claim"
	ruleLease      = "only a running run is leased"
	ruleBulk       = "payloads and outputs that a run item names exist"
	ruleOwner      = "the owner of an active run's key is that run"
	ruleSlot       = "a slot is held by the run that names it"
	ruleShard      = "index rows are in shards that readers read"
	ruleFormat     = "every item has a format that this program reads"
)

func newerFormatViolation(it item.Item) lane.Violation {
	key, _ := rows.ParseRunPK(item.TextOf(it[item.PK]))
	v := &violations{key: key}
	v.add(ruleFormat, "%s %s is of format %d, this program reads up to %d",
		item.TextOf(it[item.PK]), item.TextOf(it[item.SK]), item.Number(it[rows.AttrFormat]), rows.Format)
	return v.list[0]
}

type violations struct {
	key  lane.RunKey
	list []lane.Violation
}

func (v *violations) add(rule, format string, args ...any) {
	v.list = append(v.list, lane.Violation{RunKey: v.key, Rule: rule, Detail: fmt.Sprintf(format, args...)})
}

func (s *Store) checkRun(ctx context.Context, raw item.Item) ([]lane.Violation, error) {
	r, err := rows.UnmarshalRun(raw)
	if err != nil {
		return nil, err
	}
	v := &violations{key: r.Key()}
	if !r.State().Known() {
		v.add(ruleFormat, "this program does not know the status %q", r.Status)
		return v.list, nil
	}
	running := r.State().Owned()
	latest := r.State() == runlane.StatusQueued || r.State() == runlane.StatusScheduled
	inDue, inDone := r.DueP != "" && r.DueA != "", r.DoneP != "" && r.DoneA != ""
	if inDue == (r.State().Terminal() && !(r.NotificationPending() && r.MustNotify())) || inDone != r.State().Terminal() {
		v.add(ruleMembership, "%s, in due: %t, in done: %t", r.Status, inDue, inDone)
	}
	if err := s.checkShards(ctx, r, v); err != nil {
		return nil, err
	}
	if r.DeliveryLog != 0 && !latest {
		v.add(ruleLatest, "a %s run names the row %s", r.Status, r.DeliveryID())
	}
	if (r.LeaseToken != "") != running {
		v.add(ruleLease, "%s, leased: %t", r.Status, r.LeaseToken != "")
	}
	if inDue && r.State().Active() {
		if err := s.checkMarker(ctx, r, v); err != nil {
			return nil, err
		}
	}
	for sk, p := range map[string]rows.Place{rows.PayloadSK: r.PayloadPlace, rows.OutputSK: r.OutputPlace} {
		if !p.Separate() {
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
	if r.State().Active() {
		if err := s.checkKeys(ctx, r, v); err != nil {
			return nil, err
		}
	}
	if running && r.Slot != 0 {
		raw, err := s.db.Get(ctx, "check", r.HeldSlot().PK, r.HeldSlot().SK)
		if err != nil {
			return nil, err
		}
		if holder := item.TextOf(raw["ru"]); holder != string(v.key.RunID) {
			v.add(ruleSlot, "slot %d is held by %q", r.Slot-1, holder)
		}
	}
	return v.list, nil
}

// checkShards finds index rows in shards that no walk reads. After the number of shards grew, a row may be in another
// shard than writers choose today.
func (s *Store) checkShards(ctx context.Context, r *rows.Run, v *violations) error {
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

// claimGrace is how long a published row's run may keep a marker at the end of the publisher's claim: a scan that saw
// the claim moved it there, and then the publisher's mark moves nothing. No reader asks for a published wakeup that
// soon.
const claimGrace = time.Minute

func (s *Store) checkMarker(ctx context.Context, r *rows.Run, v *violations) error {
	m, queue, ok := r.Due().Parse()
	if !ok || string(queue) != r.Queue {
		v.add(ruleMarker, "the marker %v cannot be read, or names another queue", r.Due())
		return nil
	}
	var row *rows.Delivery
	if r.DeliveryLog != 0 {
		var err error
		if row, err = s.readDelivery(ctx, r.Key(), r.DeliveryLog, r.DeliveryIndex); err != nil {
			return err
		}
		if row == nil {
			v.add(ruleLatest, "the row %s is missing", r.DeliveryID())
		}
	}
	dead := row != nil && row.State() == lane.OutboxDeadLettered
	if (m.Kind == rows.DeadLetter) != dead {
		v.add(ruleMarker, "the marker is of kind %s, the delivery dead-lettered: %t", m.Kind, dead)
	}
	seen := rows.Classify(r, row, -1, false) // before all times, so that nothing is due yet
	need := max(seen.Marker.At, seen.Since)
	if m.Kind == rows.Unpublished && row != nil && row.State() == lane.OutboxPublished {
		need = max(need, row.Published+rows.Millis(claimGrace/time.Millisecond))
	}
	if m.Kind == rows.Slotless {
		if latest := !r.State().Owned(); !latest {
			v.add(ruleMarker, "a %s run waits for a slot", r.Status)
		}
		if _, hash, _ := rows.CutPartition(r.DueA); hash != r.Partition().Hash {
			v.add(ruleMarker, "the marker %v is of another partition", r.Due())
		}
		return nil
	}
	if !dead && m.At > need {
		v.add(ruleMarker, "the marker is at %v, the %s run needs inspection by %v", m.At.Time(), r.Status, need.Time())
	}
	return nil
}

func (s *Store) checkKeys(ctx context.Context, r *rows.Run, v *violations) error {
	owners := rows.OwnersOf(r.Projection(), "")
	for _, owner := range owners {
		raw, err := s.db.Get(ctx, "check", owner.PK, rows.OwnerSK)
		if err != nil {
			return err
		}
		passed := !rows.IsSingleton(owner) && lane.PassesOn(r.Projection().Retention)
		if holder := item.TextOf(raw["ru"]); holder != string(owner.Run) && !passed {
			v.add(ruleOwner, "the owner %s names %q", owner.PK, holder)
		}
	}
	return nil
}

// checkSlot finds a held slot that its run does not name: no commit would free it. Reservations end by time.
func (s *Store) checkSlot(ctx context.Context, raw item.Item) ([]lane.Violation, error) {
	var slot rows.SlotItem
	if err := rows.Unmarshal(raw, &slot); err != nil {
		return nil, err
	}
	environment, _, _ := strings.Cut(slot.PK, ":")
	v := &violations{key: lane.RunKey{Environment: runlane.Environment(environment), RunID: slot.Run}}
	r, err := s.readRun(ctx, v.key)
	if errors.Is(err, rows.ErrNewer) {
		return nil, nil // reported for the run itself
	}
	if err != nil {
		return nil, err
	}
	if slot.Until == 0 && (r == nil || r.Slot != slot.Number()+1 || r.Partition().PK() != slot.PK) {
		v.add(ruleSlot, "slot %d of %s is held by a run that does not name it", slot.Number(), slot.PK)
	}
	return v.list, nil
}

// checkOwner finds an owner that names a run with other keys. Owners of missing and finished runs are replaced on
// demand.
func (s *Store) checkOwner(ctx context.Context, raw item.Item) ([]lane.Violation, error) {
	var owner rows.Owner
	if err := rows.Unmarshal(raw, &owner); err != nil {
		return nil, err
	}
	r, err := s.readRun(ctx, owner.RunKey())
	if errors.Is(err, rows.ErrNewer) {
		return nil, nil
	}
	if err != nil || r == nil {
		return nil, err
	}
	for _, own := range rows.OwnersOf(r.Projection(), "") {
		if own.PK == owner.PK {
			return nil, nil
		}
	}
	v := &violations{key: r.Key()}
	v.add(ruleOwner, "the owner %s names a run that never had the key", owner.PK)
	return v.list, nil
}
