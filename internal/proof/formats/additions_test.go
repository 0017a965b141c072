package formats_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// addition is the name of every part that a newer program of the same format adds.
const addition = "zz"

// added is what a newer program would have written in place of a recording: the same, with a part of each type added to every item,
// every outbox row, every event, every object in it, and every message.
func added(t testing.TB, r *recording) *recording {
	t.Helper()
	out := &recording{At: r.At, Lives: r.Lives}
	for i, it := range r.Items {
		it = maps.Clone(it)
		it[addition] = additions()[i%len(additions())]
		if list, ok := it["dl"].(*types.AttributeValueMemberL); ok {
			it["dl"] = addedRows(list.Value)
		}
		if b, ok := it["ev"].(*types.AttributeValueMemberB); ok {
			it["ev"] = &types.AttributeValueMemberB{Value: []byte(addedJSON(t, string(opened(t, b.Value))))}
		}
		out.Items = append(out.Items, it)
	}
	for _, m := range r.Messages {
		m.Body = addedJSON(t, m.Body)
		out.Messages = append(out.Messages, m)
	}
	return out
}

// additions are one of each type that DynamoDB has, but for sets of numbers and of bytes.
func additions() []types.AttributeValue {
	s := &types.AttributeValueMemberS{Value: "new"}
	return []types.AttributeValue{
		s, &types.AttributeValueMemberN{Value: "1.5"}, &types.AttributeValueMemberBOOL{Value: true}, &types.AttributeValueMemberNULL{Value: true},
		&types.AttributeValueMemberB{Value: []byte("new")}, &types.AttributeValueMemberL{Value: []types.AttributeValue{s}},
		&types.AttributeValueMemberM{Value: item{"new": s}}, &types.AttributeValueMemberSS{Value: []string{"new"}},
	}
}

func addedRows(rows []types.AttributeValue) types.AttributeValue {
	out := make([]types.AttributeValue, len(rows))
	for i, row := range rows {
		out[i] = row
		if m, ok := row.(*types.AttributeValueMemberM); ok {
			fields := maps.Clone(m.Value)
			fields[addition] = additions()[i%len(additions())]
			out[i] = &types.AttributeValueMemberM{Value: fields}
		}
	}
	return &types.AttributeValueMemberL{Value: out}
}

func addedJSON(t testing.TB, text string) string {
	t.Helper()
	var v any
	decodeJSON(t, text, &v)
	return encodeJSON(t, addToObjects(v, ""))
}

// addToObjects leaves maps alone whose names an application chooses.
func addToObjects(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		if slices.Contains(textMaps, name) {
			return v
		}
		for field, inner := range v {
			v[field] = addToObjects(inner, field)
		}
		v[addition] = map[string]any{"new": json.Number("1")}
	case []any:
		for i := range v {
			v[i] = addToObjects(v[i], "")
		}
	}
	return v
}

// A newer program of the same format may add parts to everything: today's tells of its runs what it tells of runs of today.
func TestAdditions_OfANewerProgram_AreIgnored(t *testing.T) {
	t.Parallel()
	r := added(t, loadRecording(t, current))
	openWorld(t, r.At, r.Items).tellsTheSame(r)
}

func sameJSON(t testing.TB, a, b types.AttributeValue) bool {
	t.Helper()
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return encodeJSON(t, a) == encodeJSON(t, b) && typeOf(a) == typeOf(b)
}
