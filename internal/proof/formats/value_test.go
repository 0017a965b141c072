package formats_test

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/klauspost/compress/zstd"
)

// Items are written in DynamoDB's own JSON, with their attributes sorted.

func encodeItem(t testing.TB, it item) string {
	t.Helper()
	return encodeJSON(t, plainItem(t, it))
}

func plainItem(t testing.TB, it item) map[string]any {
	t.Helper()
	plain := make(map[string]any, len(it))
	for name, v := range it {
		plain[name] = plainValue(t, v)
	}
	return plain
}

func plainValue(t testing.TB, v types.AttributeValue) map[string]any {
	t.Helper()
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": base64.StdEncoding.EncodeToString(v.Value)}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}
	case *types.AttributeValueMemberNULL:
		return map[string]any{"NULL": true}
	case *types.AttributeValueMemberM:
		return map[string]any{"M": plainItem(t, v.Value)}
	case *types.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, e := range v.Value {
			list[i] = plainValue(t, e)
		}
		return map[string]any{"L": list}
	default:
		t.Fatalf("no recording has a %T", v)
		return nil
	}
}

func decodeItem(t testing.TB, line string) item {
	t.Helper()
	var raw map[string]json.RawMessage
	decodeJSON(t, line, &raw)
	it := make(item, len(raw))
	for name, v := range raw {
		it[name] = decodeValue(t, v)
	}
	return it
}

func decodeValue(t testing.TB, raw json.RawMessage) types.AttributeValue {
	t.Helper()
	var v struct {
		S    *string
		N    *string
		B    []byte
		BOOL *bool
		NULL *bool
		M    map[string]json.RawMessage
		L    *[]json.RawMessage
	}
	decodeJSON(t, string(raw), &v)
	switch {
	case v.S != nil:
		return &types.AttributeValueMemberS{Value: *v.S}
	case v.N != nil:
		return &types.AttributeValueMemberN{Value: *v.N}
	case v.B != nil:
		return &types.AttributeValueMemberB{Value: v.B}
	case v.BOOL != nil:
		return &types.AttributeValueMemberBOOL{Value: *v.BOOL}
	case v.NULL != nil:
		return &types.AttributeValueMemberNULL{Value: *v.NULL}
	case v.M != nil:
		m := make(item, len(v.M))
		for name, e := range v.M {
			m[name] = decodeValue(t, e)
		}
		return &types.AttributeValueMemberM{Value: m}
	case v.L != nil:
		list := make([]types.AttributeValue, len(*v.L))
		for i, e := range *v.L {
			list[i] = decodeValue(t, e)
		}
		return &types.AttributeValueMemberL{Value: list}
	default:
		t.Fatalf("no value: %.200s", raw)
		return nil
	}
}

func text(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func keyOf(it item) string { return text(it["pk"]) + " " + text(it["sk"]) }

func sortItems(items []item) {
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(strings.Compare(text(a["pk"]), text(b["pk"])), strings.Compare(text(a["sk"]), text(b["sk"])))
	})
}

// randomAttributes hold what a storage draws at random: commits, claims, requeues.
var randomAttributes = []string{"ci", "ct", "pc", "rd"}

// renumber replaces each random text by a separate number, in the order in which the sorted items have them, so that two recordings of
// the same are equal.
func renumber(items []item) {
	numbers := map[string]string{}
	var walk func(it item)
	walk = func(it item) {
		for _, name := range sortedNames(it) {
			switch v := it[name].(type) {
			case *types.AttributeValueMemberS:
				if !slices.Contains(randomAttributes, name) || len(v.Value) != 32 {
					continue
				}
				if numbers[v.Value] == "" {
					numbers[v.Value] = fmt.Sprintf("%032x", len(numbers)+1)
				}
				v.Value = numbers[v.Value]
			case *types.AttributeValueMemberL:
				for _, e := range v.Value {
					if m, ok := e.(*types.AttributeValueMemberM); ok {
						walk(m.Value)
					}
				}
			}
		}
	}
	for _, it := range items {
		walk(it)
	}
}

func sortedNames(it item) []string {
	names := make([]string, 0, len(it))
	for name := range it {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

var zstdMagic = []byte{0x28, 0xB5, 0x2F, 0xFD}

// opened is b without its compression. How a library compresses is no part of a format: recordings are compared opened.
func opened(t testing.TB, b []byte) []byte {
	t.Helper()
	if !bytes.HasPrefix(b, zstdMagic) {
		return b
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	out, err := d.DecodeAll(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// readable is an item as people compare it: compressed bytes are opened, and bytes are text.
func readable(t testing.TB, it item) map[string]any {
	t.Helper()
	out := plainItem(t, it)
	for name, v := range it {
		if b, ok := v.(*types.AttributeValueMemberB); ok {
			form := "B"
			if bytes.HasPrefix(b.Value, zstdMagic) {
				form = "B, compressed"
			}
			out[name] = map[string]any{form: string(opened(t, b.Value))}
		}
	}
	return out
}
