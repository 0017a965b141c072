package dynamostore

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// FuzzOpenCursor gives anything as a cursor: it is refused as input, or it is one of this request.
func FuzzOpenCursor(f *testing.F) {
	f.Add(string(sealCursor("list", listPosition{1, indexPosition{"p", "s", "k"}})), "list")
	f.Add(string(sealCursor("other", eventPosition{7})), "list")
	f.Add("bnVsbA", "list")
	f.Add("eyJjIjoiIiwicCI6bnVsbH0", "")
	f.Fuzz(func(t *testing.T, text, scope string) {
		var at listPosition
		err := openCursor(runlane.Cursor(text), scope, &at)
		if err != nil && runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Fatal(err)
		}
		if err == nil && text != "" {
			if err := openCursor(runlane.Cursor(text), scope+"x", &at); err == nil {
				t.Fatalf("%q is a cursor of two requests", text)
			}
		}
	})
}

// FuzzDecompress gives anything as stored bytes: they are refused, or expand to a bounded length and say the same when they are
// compressed again.
func FuzzDecompress(f *testing.F) {
	f.Add(compress([]byte("short")))
	f.Add(compress(bytes.Repeat([]byte("long and regular "), 500)))
	f.Add(streamed(f, make([]byte, 2<<20)))
	f.Add(claiming(1 << 40))
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
		log := logItem{SK: sk, Events: events}
		first, err := log.first()
		if err != nil && runlane.CodeOf(err) != runlane.ErrInvariantViolation {
			t.Fatal(err)
		}
		records, err := log.records(lane.RunKey{Environment: "test", RunID: "run_1"}, "q", first)
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
	f.Add("default:run:", "")
	f.Fuzz(func(t *testing.T, id, token string) {
		if run, first, index, ok := parseOutboxID(id); ok {
			if again, n, i, ok := parseOutboxID(outboxID(run, first, index)); !ok || again != run || n != first || i != index {
				t.Fatalf("%q is read as %q", id, outboxID(run, first, index))
			}
		}
		if row, ok := parseClaim("test", lane.OutboxRef{ID: id, ClaimToken: token}); ok && (row.id != id || row.token == "" || row.key.RunID == "") {
			t.Fatalf("%q and %q are read as %+v", id, token, row)
		}
		if key, ok := parseRunPK(id); ok && key.Environment != "" && runPK(key) != id {
			t.Fatalf("%q is read as %q", id, runPK(key))
		}
		row, ok := parseDueRow(item{attrPK: text("test:run:run_1"), attrDueP: text(id), attrDueA: text(token)})
		if row.run != "run_1" || ok && row.key != (dueKey{id, token}) {
			t.Fatalf("%q and %q are read as %+v", id, token, row)
		}
		if ms := parseMillis(id); ms != 0 {
			if n, err := strconv.ParseInt(id, 10, 64); err != nil || millis(n) != ms {
				t.Fatalf("%q is read as %d", id, ms)
			}
		}
	})
}

// FuzzParseStreamImage gives anything as an item of the table's stream, and as a run item that is read.
func FuzzParseStreamImage(f *testing.F) {
	f.Add("test:run:run_1", "log:0000000002", "1", "pending", []byte("[]"), "1")
	f.Add("test:run:run_1", "log:x", "1", "pending", []byte(nil), "99999999999999999999")
	f.Add("test:config", "shards", "", "", []byte("\x00"), "-1")
	f.Add(":run:", "log:0", "1", "claimed", []byte(nil), "1e3")
	f.Fuzz(func(t *testing.T, pk, sk, relay, status string, events []byte, number string) {
		attempts := types.AttributeValue(&types.AttributeValueMemberN{Value: number})
		delivery := &types.AttributeValueMemberM{Value: item{"st": text(status), "at": attempts, "tc": &types.AttributeValueMemberNULL{Value: true}}}
		image := item{
			attrPK: text(pk), attrSK: text(sk), RelayAttribute: text(relay), "ev": &types.AttributeValueMemberB{Value: events},
			"dl": &types.AttributeValueMemberL{Value: []types.AttributeValue{delivery}}, "sq": attempts, "st": text(status),
		}
		record, err := ParseStreamImage(image)
		if err != nil && runlane.CodeOf(err) != runlane.ErrInvariantViolation {
			t.Fatal(err)
		}
		for _, id := range record.OutboxIDs {
			if run, _, _, ok := parseOutboxID(id); relay != RelayValue || ok && run != record.RunID {
				t.Fatalf("%v has row %q", image, id)
			}
		}
		for _, wrong := range []string{"st", "dl", "ev", "sq"} { // a value of another type where each attribute stands
			image[wrong] = &types.AttributeValueMemberSS{Value: []string{status}}
		}
		if _, err := ParseStreamImage(image); err != nil && runlane.CodeOf(err) != runlane.ErrInvariantViolation {
			t.Fatal(err)
		}
		if _, err := unmarshalRun(image); runlane.CodeOf(err) != runlane.ErrInvariantViolation {
			t.Fatalf("read with %v", err)
		}
	})
}
