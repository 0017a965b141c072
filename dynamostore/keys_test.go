package dynamostore

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func TestKeys_RoundTrip(t *testing.T) {
	t.Parallel()
	id := rapid.StringMatching(`[a-zA-Z0-9_./#| -]{1,40}`)
	rapid.Check(t, func(t *rapid.T) {
		key := lane.RunKey{Environment: runlane.Environment(id.Draw(t, "environment")), RunID: runlane.RunID(id.Draw(t, "run"))}
		if got, ok := parseRunPK(runPK(key)); !ok || got != key {
			t.Fatalf("run key %+v became %+v", key, got)
		}
		first, index := rapid.Int64Range(1, 1<<40).Draw(t, "first"), rapid.IntRange(0, 99).Draw(t, "index")
		run, f, i, ok := parseOutboxID(outboxID(key.RunID, first, index))
		if !ok || run != key.RunID || f != first || i != index {
			t.Fatalf("outbox id became %s %d %d", run, f, i)
		}
		m := marker{markerKind(rapid.SampledFrom([]string{"q", "o", "x", "w", "p", "l"}).Draw(t, "kind")), millis(rapid.Int64Range(0, int64(farFuture)).Draw(t, "at"))}
		queue := runlane.QueueName(id.Draw(t, "queue"))
		due := m.key(key.Environment, 3, queue)
		if got, q, ok := due.parse(); !ok || got != m || q != queue {
			t.Fatalf("marker %+v became %+v %q", m, got, q)
		}
		r := &runItem{PK: runPK(key), Sequence: first, DueP: due.partition, DueA: due.sort}
		row, ok := parseClaim(key.Environment, lane.OutboxRef{ID: outboxID(key.RunID, first, index), ClaimToken: claimToken("abc", r)})
		if !ok || row.token != "abc" || row.sequence != first || row.due != due || row.key != key {
			t.Fatalf("claim became %+v", row)
		}
	})
}

func TestClaimTokens_OfOthers_AreStale(t *testing.T) {
	t.Parallel()
	for _, ref := range []lane.OutboxRef{
		{}, {ID: "run_1:1:0"}, {ID: "run_1:1:0", ClaimToken: "token"}, {ID: "run_1", ClaimToken: "a:1:0:t:q:1:5:d"}, {ID: "run_1:x:0", ClaimToken: "a:1:0:t:q:1:5:d"},
		{ID: "run_1:1:0", ClaimToken: "a:x:0:t:q:1:5:d"}, {ID: "run_1:1:0", ClaimToken: ":1:0:t:q:1:5:d"}, {ID: "run_1:0:0", ClaimToken: "a:1:0:t:q:1:5:d"},
	} {
		if row, ok := parseClaim("test", ref); ok {
			t.Errorf("%+v was read as %+v", ref, row)
		}
	}
}

// Two lists of parts that read alike must not share a key.
func TestHashParts_IsPrefixFree(t *testing.T) {
	t.Parallel()
	if hashParts("a", "bc") == hashParts("ab", "c") || hashParts("a") == hashParts("a", "") {
		t.Error("parts run together")
	}
	if got := hashParts("task", "key"); len(got) != 32 || got != hashParts("task", "key") {
		t.Errorf("hash %q", got)
	}
}

// The order of sort keys is the order of the layout, so that one query from 'payload' on reads payload and run.
func TestSortKeys_Order(t *testing.T) {
	t.Parallel()
	keys := []string{logSK(1), logSK(2), logSK(10), logSK(9_999_999_999), skOutput, skPayload, skRun}
	for i := 1; i < len(keys); i++ {
		if keys[i-1] >= keys[i] {
			t.Errorf("%q is not before %q", keys[i-1], keys[i])
		}
	}
}

func TestShards_SpreadEvenly(t *testing.T) {
	t.Parallel()
	var count [defaultShards]int
	for i := range 8000 {
		count[shardOf(("run_"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+time.Duration(i).String()), defaultShards)]++
	}
	for shard, n := range count {
		if n < 700 || n > 1300 {
			t.Errorf("shard %d has %d of 8000", shard, n)
		}
	}
}

func TestPlaces_KeepBytesAndChooseTheCheapest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.UintN(256))
		}
		return b
	}
	for name, row := range map[string]struct {
		body []byte
		room int
		want place
	}{
		"none":                       {nil, 500, nowhere},
		"short":                      {[]byte(`{"a": "<b>", "n": 1.0e2}`), 500, inline},
		"lone surrogate":             {[]byte(`"\ud800"`), 500, inline},
		"long and regular":           {bytes.Repeat([]byte("webhook "), 200), 500, inlineZstd},
		"incompressible":             {noise(3000), 500, separate},
		"compressible, too long":     {append(noise(900), bytes.Repeat([]byte("x"), 3000)...), 500, separateZstd},
		"no room at all":             {[]byte(`{}`), -20, separate},
		"compressing saves no unit":  {append(noise(700), bytes.Repeat([]byte("x"), 100)...), 500, separate},
		"hundreds of kilobytes":      {bytes.Repeat([]byte(`{"a": "<b>", "n": 1.0e2}`), 12_800), 500, inlineZstd},
		"exactly as much as is room": {noise(500), 500, inline},
	} {
		p, stored := put(row.body, row.room)
		if p != row.want {
			t.Errorf("%s: place %d, want %d", name, p, row.want)
		}
		if got, err := open(p, stored); err != nil || !bytes.Equal(got, row.body) {
			t.Errorf("%s: bytes differ: %v", name, err)
		}
	}
	if _, err := open(inlineZstd, []byte("no zstd")); !errors.Is(err, runlane.ErrInvariantViolation) {
		t.Errorf("broken bytes: %v", err)
	}
}

func TestCursor_BelongsToOneRequest(t *testing.T) {
	t.Parallel()
	c := sealCursor("list a", eventPosition{7})
	var at eventPosition
	if err := openCursor(c, "list a", &at); err != nil || at.Sequence != 7 {
		t.Fatal(at, err)
	}
	for name, bad := range map[string]runlane.Cursor{"another request": sealCursor("list b", eventPosition{7}), "no cursor": "~", "no JSON": "YWJj"} {
		if err := openCursor(bad, "list a", &at); !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Sizes as DynamoDB documents them.
func TestItemSize(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		it   item
		want int
	}{
		"text":   {item{"pk": text("abc")}, 5},
		"number": {item{"n": num(12345)}, 1 + 1 + 3},
		"sign":   {item{"n": num(-12)}, 1 + 1 + 1 + 1},
		"bytes":  {item{"b": &types.AttributeValueMemberB{Value: make([]byte, 10)}}, 11},
		"map":    {item{"m": &types.AttributeValueMemberM{Value: item{"k": text("v")}}}, 1 + 3 + 1 + 2},
		"list":   {item{"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{text("v")}}}, 1 + 3 + 1 + 1},
		"bool":   {item{"t": &types.AttributeValueMemberBOOL{Value: true}}, 2},
	} {
		if got := itemSize(row.it); got != row.want {
			t.Errorf("%s: %d bytes, want %d", name, got, row.want)
		}
	}
}

func TestRedelivery_DistanceDoublesFromTheFirstPublication(t *testing.T) {
	t.Parallel()
	minute := millis(time.Minute / time.Millisecond)
	row := delivery{Status: string(lane.OutboxPublished)}
	row.FirstSent = 1000 * minute
	row.Published = row.FirstSent
	for _, distance := range []millis{10, 20, 40, 80, 160, 320, 360, 360} {
		next := row.redeliverAt()
		if got := (next - row.Published) / minute; got != distance {
			t.Errorf("distance %d minutes, want %d", got, distance)
		}
		row.Published = next
	}
}

func TestParseStreamImage(t *testing.T) {
	t.Parallel()
	client := newScripted()
	store := New(client, "table", nil)
	c := creation(t, "run_1")
	c.Outbox = lane.OutboxBirth{}
	commit, err := store.AppendRunEvents(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	log := client.items["test:run:run_1 log:0000000001"]
	record, err := ParseStreamImage(log)
	want := StreamRecord{Environment: "test", RunID: "run_1", OutboxIDs: []string{commit.Outbox[0].ID}}
	if err != nil || !cmp.Equal(record, want) {
		t.Errorf("%+v %v", record, err)
	}
	if textOf(log[RelayAttribute]) != RelayValue {
		t.Error("the stream's filter would not see it")
	}
	for name, image := range map[string]item{"no item": nil, "a run": client.items["test:run:run_1 run"], "foreign": {"pk": text("x")}} {
		if record, err := ParseStreamImage(image); err != nil || record.OutboxIDs != nil {
			t.Errorf("%s: %+v %v", name, record, err)
		}
	}
	if _, err := ParseStreamImage(item{"pk": text("test:run:run_1"), "sk": text("log:x"), "relay": text("1")}); !errors.Is(err, runlane.ErrInvariantViolation) {
		t.Errorf("broken log: %v", err)
	}
}

// Rows born claimed, and rows for later, are none of the relay's business.
func TestRelayAttribute_OnlyOnRowsBornPendingAndDue(t *testing.T) {
	t.Parallel()
	client := newScripted()
	if _, err := New(client, "table", nil).AppendRunEvents(t.Context(), creation(t, "run_1")); err != nil {
		t.Fatal(err)
	}
	if _, there := client.items["test:run:run_1 log:0000000001"][RelayAttribute]; there {
		t.Error("a row born claimed would invoke the relay")
	}
}

// Attributes that a newer version wrote survive the updates of this one.
func TestUpdate_LeavesUnknownAttributesAlone(t *testing.T) {
	t.Parallel()
	before, after := item{"sq": num(1), "zz": text("newer"), "lt": text("token")}, item{"sq": num(2)}
	keepUnknown(after, before)
	m := member{before: before, after: after, condition: equal("sq", num(1))}
	got, values := m.change()
	if got != "SET #sq = :to_sq REMOVE #lt" || len(values) != 2 {
		t.Errorf("%q %v", got, values)
	}
}

func TestNames_FindsEveryAttribute(t *testing.T) {
	t.Parallel()
	got := names("SET #dl[0].#st = :st, #da = :x REMOVE #ct", "#sq = :is_sq AND attribute_not_exists(#pk)")
	want := map[string]string{"#dl": "dl", "#st": "st", "#da": "da", "#ct": "ct", "#sq": "sq", "#pk": "pk"}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

// An event of a newer version is listed with its bytes.
func TestEvents_UnknownOnesAreKept(t *testing.T) {
	t.Parallel()
	events, err := json.Marshal([]storedEvent{{Type: "run.paused", At: 5, Data: json.RawMessage(`{"why":"<x>"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	log := &logItem{SK: logSK(3), Events: events}
	records, err := log.records(lane.RunKey{RunID: "run_1"}, "default", 3)
	if err != nil || len(records) != 1 || records[0].Type() != "run.paused" || records[0].Sequence != 3 {
		t.Fatalf("%+v %v", records, err)
	}
	if data, err := runlane.MarshalBody(records[0].Body); err != nil || !json.Valid(data) {
		t.Errorf("%s %v", data, err)
	}
}
