package rows

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// FuzzDecompress gives anything as stored bytes: they are refused, or expand to a bounded length and say the same when they are
// compressed again.
func FuzzDecompress(f *testing.F) {
	f.Add(compress([]byte("short")))
	f.Add(compress(bytes.Repeat([]byte("long and regular "), 500)))
	f.Add(Streamed(f, make([]byte, 2<<20)))
	f.Add(Claiming(1 << 40))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		out, err := decompress(b)
		if err != nil {
			if runlane.CodeOf(err) != runlane.ErrInvariantViolation {
				t.Fatal(err)
			}
			return
		}
		if len(out) > maxOpenedBytes {
			t.Fatalf("%d bytes are %d", len(b), len(out))
		}
		if again, err := decompress(compress(out)); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%x is not read again: %v", b, err)
		}
	})
}

// FuzzLogItem gives anything as the events of a commit.
func FuzzLogItem(f *testing.F) {
	list := []byte(`[{"t":"run.created","o":1,"d":{"taskId":"t"}},{"t":"run.later","o":2,"d":{"a":1}},{"t":"run.delivery_requested","d":{}}]`)
	f.Add("log:0000000001", list)
	f.Add("log:-1", compress(list))
	f.Add("log:", []byte("[null]"))
	f.Add("", []byte(`[{"t":"run.started","d":null}]`))
	f.Fuzz(func(t *testing.T, sk string, events []byte) {
		log := Log{SK: sk, Events: events}
		first, err := log.First()
		if err != nil && runlane.CodeOf(err) != runlane.ErrInvariantViolation {
			t.Fatal(err)
		}
		records, err := log.Records(lane.RunKey{Environment: "test", RunID: "run_1"}, "q", first)
		if err != nil && runlane.CodeOf(err) != runlane.ErrInvariantViolation {
			t.Fatal(err)
		}
		for i, r := range records {
			if r.RunID != "run_1" || r.Environment != "test" || r.Sequence != first+int64(i) || r.Body == nil {
				t.Fatalf("%q has %+v", events, r)
			}
		}
	})
}

// FuzzKeys gives anything as what this package makes itself: ids of rows, claims, keys of items.
func FuzzKeys(f *testing.F) {
	f.Add("run_1:3:0", "token:4:test:due:d:0:0000000000001:run_1")
	f.Add("run_1:+3:00", "token:4:a:b:c:d:e")
	f.Add("a:run:b", "::::::")
	f.Add("a:flow:release-42", "")
	f.Add("default:run:", "")
	f.Fuzz(func(t *testing.T, id, token string) {
		if run, first, index, ok := ParseOutboxID(id); ok {
			if again, n, i, ok := ParseOutboxID(OutboxID(run, first, index)); !ok || again != run || n != first || i != index {
				t.Fatalf("%q is read as %q", id, OutboxID(run, first, index))
			}
		}
		if row, ok := ParseClaim("test", lane.OutboxRef{ID: id, ClaimToken: token}); ok && (row.ID != id || row.token == "" || row.Key.RunID == "") {
			t.Fatalf("%q and %q are read as %+v", id, token, row)
		}
		if key, ok := ParseRunPK(id); ok && key.Environment != "" && RunPK(key) != id {
			t.Fatalf("%q is read as %q", id, RunPK(key))
		}
		if flow := ParseFlowPK(id); flow.Validate() == nil && !strings.HasSuffix(id, ":flow:"+string(flow)) {
			t.Fatalf("%q is read as flow %q", id, flow)
		}
		row, ok := ParseDueRow(item.Item{item.PK: item.Text("test:run:run_1"), AttrDueP: item.Text(id), AttrDueA: item.Text(token)})
		if row.Run != "run_1" || ok && row.Key != (DueKey{id, token}) {
			t.Fatalf("%q and %q are read as %+v", id, token, row)
		}
		if ms := ParseMillis(id); ms != 0 {
			if n, err := strconv.ParseInt(id, 10, 64); err != nil || Millis(n) != ms {
				t.Fatalf("%q is read as %d", id, ms)
			}
		}
	})
}

// FuzzWait gives anything as a stored wait: it is none, or says the same when it is stored again.
func FuzzWait(f *testing.F) {
	f.Add(`{"f":["s","t"],"n":["approved"],"u":1700000000000,"p":"Approve?"}`)
	f.Add(`{"f":["e"],"d":2}`)
	f.Add(`{"f":["later"]}`)
	f.Add(`{`)
	f.Fuzz(func(t *testing.T, stored string) {
		r := Run{Sequence: 3, Wait: stored, WaitSequence: 3}
		w := r.Waiting()
		if w == nil {
			return
		}
		r.keepWait(w)
		if again := r.Waiting(); !reflect.DeepEqual(again, w) {
			t.Fatalf("%q is %+v, then %+v", stored, w, again)
		}
		if r.Sequence++; r.Waiting() != nil {
			t.Fatal("a wait is in force after a later event")
		}
	})
}
