package rows

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

func TestKeys_RoundTrip(t *testing.T) {
	t.Parallel()
	id := rapid.StringMatching(`[a-zA-Z0-9_./#| -]{1,40}`)
	rapid.Check(t, func(t *rapid.T) {
		key := lane.RunKey{Environment: runlane.Environment(id.Draw(t, "environment")), RunID: runlane.RunID(id.Draw(t, "run"))}
		if got, ok := ParseRunPK(RunPK(key)); !ok || got != key {
			t.Fatalf("run key %+v became %+v", key, got)
		}
		first, index := rapid.Int64Range(1, 1<<40).Draw(t, "first"), rapid.IntRange(0, 99).Draw(t, "index")
		run, f, i, ok := ParseOutboxID(OutboxID(key.RunID, first, index))
		if !ok || run != key.RunID || f != first || i != index {
			t.Fatalf("outbox id became %s %d %d", run, f, i)
		}
		m := Marker{MarkerKind(rapid.SampledFrom([]string{"q", "o", "x", "w", "p", "l"}).Draw(t, "kind")), Millis(rapid.Int64Range(0, int64(FarFuture)).Draw(t, "at"))}
		queue := runlane.QueueName(id.Draw(t, "queue"))
		due := m.Key(key.Environment, 3, queue)
		if got, q, ok := due.Parse(); !ok || got != m || q != queue {
			t.Fatalf("marker %+v became %+v %q", m, got, q)
		}
		r := &Run{PK: RunPK(key), Sequence: first, DueP: due.Partition, DueA: due.Sort}
		row, ok := ParseClaim(key.Environment, lane.OutboxRef{ID: OutboxID(key.RunID, first, index), ClaimToken: TokenOf("abc", r)})
		if !ok || row.token != "abc" || row.Sequence != first || row.Due != due || row.Key != key {
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
		if row, ok := ParseClaim("test", ref); ok {
			t.Errorf("%+v was read as %+v", ref, row)
		}
	}
}

// Two lists of parts that read alike must not share a key.
func TestHashParts_IsPrefixFree(t *testing.T) {
	t.Parallel()
	if Hash("a", "bc") == Hash("ab", "c") || Hash("a") == Hash("a", "") {
		t.Error("parts run together")
	}
	if got := Hash("task", "key"); len(got) != 32 || got != Hash("task", "key") {
		t.Errorf("hash %q", got)
	}
}

func TestShards_SpreadEvenly(t *testing.T) {
	t.Parallel()
	var count [DefaultShards]int
	for i := range 8000 {
		count[ShardOf(("run_"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+time.Duration(i).String()), DefaultShards)]++
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
		want Place
	}{
		"none":                       {nil, 500, Nowhere},
		"short":                      {[]byte(`{"a": "<b>", "n": 1.0e2}`), 500, inline},
		"lone surrogate":             {[]byte(`"\ud800"`), 500, inline},
		"long and regular":           {bytes.Repeat([]byte("webhook "), 200), 500, inlineZstd},
		"incompressible":             {noise(3000), 500, Separate},
		"compressible, too long":     {append(noise(900), bytes.Repeat([]byte("x"), 3000)...), 500, SeparateZstd},
		"no room at all":             {[]byte(`{}`), -20, Separate},
		"compressing saves no unit":  {append(noise(700), bytes.Repeat([]byte("x"), 100)...), 500, Separate},
		"hundreds of kilobytes":      {bytes.Repeat([]byte(`{"a": "<b>", "n": 1.0e2}`), 12_800), 500, inlineZstd},
		"exactly as much as is room": {noise(500), 500, inline},
	} {
		p, stored := place(row.body, row.room)
		if p != row.want {
			t.Errorf("%s: place %d, want %d", name, p, row.want)
		}
		if got, err := Open(p, stored); err != nil || !bytes.Equal(got, row.body) {
			t.Errorf("%s: bytes differ: %v", name, err)
		}
	}
	if _, err := Open(inlineZstd, []byte("no zstd")); !errors.Is(err, runlane.ErrInvariantViolation) {
		t.Errorf("broken bytes: %v", err)
	}
}

// Sizes as DynamoDB documents them.
func TestItemSize(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		it   item.Item
		want int
	}{
		"text":   {item.Item{"pk": item.Text("abc")}, 5},
		"number": {item.Item{"n": item.Num(12345)}, 1 + 1 + 3},
		"sign":   {item.Item{"n": item.Num(-12)}, 1 + 1 + 1 + 1},
		"bytes":  {item.Item{"b": &types.AttributeValueMemberB{Value: make([]byte, 10)}}, 11},
		"map":    {item.Item{"m": &types.AttributeValueMemberM{Value: item.Item{"k": item.Text("v")}}}, 1 + 3 + 1 + 2},
		"list":   {item.Item{"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{item.Text("v")}}}, 1 + 3 + 1 + 1},
		"bool":   {item.Item{"t": &types.AttributeValueMemberBOOL{Value: true}}, 2},
	} {
		if got := item.Size(row.it); got != row.want {
			t.Errorf("%s: %d bytes, want %d", name, got, row.want)
		}
	}
}

// Attributes that a newer version wrote survive the updates of this one.
func TestUpdate_LeavesUnknownAttributesAlone(t *testing.T) {
	t.Parallel()
	before, after := item.Item{"sq": item.Num(1), "zz": item.Text("newer"), "lt": item.Text("token")}, item.Item{"sq": item.Num(2)}
	keepUnknown(after, before)
	m := item.Write{Before: before, After: after, Condition: item.Equal("sq", item.Num(1))}
	got, values := m.Change()
	if got != "SET #sq = :to_sq REMOVE #lt" || len(values) != 2 {
		t.Errorf("%q %v", got, values)
	}
}
