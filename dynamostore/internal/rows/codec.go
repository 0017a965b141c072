package rows

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
)

// Format is the newest format of stored items (docs/compatibility.md). Attribute v has an item's format; without v it
// is 1. A run item's format applies to everything under the run's key.
const Format = 2

const AttrFormat = "v"

// ErrNewer is the cause of each error about an item of a newer program.
var ErrNewer = errors.New("written by a newer program")

// Newer reports an item that this program may neither interpret nor change, also one with a format that is no number.
func Newer(it item.Item) bool {
	v, numbered := it[AttrFormat]
	return numbered && (item.Number(v) < 1 || item.Number(v) > Format)
}

func refuseNewer(it item.Item) error {
	e := &runlane.Error{
		Code:  runlane.ErrInvariantViolation,
		Cause: ErrNewer,
		Hint:  "update this program; nothing was changed",
		Message: fmt.Sprintf(
			"stored item is of format %d, this program reads up to %d",
			item.Number(it[AttrFormat]),
			Format,
		),
	}
	if pk := item.TextOf(it[item.PK]); strings.Contains(pk, ":run:") {
		key, _ := ParseRunPK(pk)
		e.RunID = key.RunID
	}
	return e
}

// Structs of items hold strings, integers, booleans, bytes, string maps, and lists of strings or of such structs.
// Marshal and Unmarshal match the SDK's attributevalue package (a test compares them) in less than half the time.

func Marshal(v any) (item.Item, error) {
	it, err := encodeStruct(reflect.Indirect(reflect.ValueOf(v)))
	if err != nil {
		return nil, &runlane.Error{Code: runlane.ErrInternal, Message: "item does not marshal", Cause: err}
	}
	return it, nil
}

// Unmarshal ignores attributes without a field in v, and refuses an item of a newer format. It does not copy bytes.
func Unmarshal(it item.Item, v any) error {
	if Newer(it) {
		return refuseNewer(it)
	}
	if err := decodeStruct(it, reflect.ValueOf(v).Elem()); err != nil {
		return &runlane.Error{
			Code:    runlane.ErrInvariantViolation,
			Message: "stored item does not unmarshal",
			Cause:   err,
		}
	}
	return nil
}

type attribute struct {
	name      string
	index     int
	omitEmpty bool
}

var attributesByType sync.Map // []attribute

func attributesOf(t reflect.Type) []attribute {
	if known, ok := attributesByType.Load(t); ok {
		return known.([]attribute)
	}
	var attributes []attribute
	for i := range t.NumField() {
		tag, ok := t.Field(i).Tag.Lookup("dynamodbav")
		if name, options, _ := strings.Cut(tag, ","); ok && name != "-" {
			attributes = append(attributes, attribute{name, i, options == "omitempty"})
		}
	}
	attributesByType.Store(t, attributes)
	return attributes
}

func encodeStruct(v reflect.Value) (item.Item, error) {
	attributes := attributesOf(v.Type())
	it := make(item.Item, (len(attributes)+1)/2)
	for _, a := range attributes {
		f := v.Field(a.index)
		if a.omitEmpty && empty(f) {
			continue
		}
		value, err := encode(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
		it[a.name] = value
	}
	return it, nil
}

func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

func encode(v reflect.Value) (types.AttributeValue, error) {
	switch v.Kind() { //nolint:exhaustive // the others are refused below
	case reflect.String:
		return &types.AttributeValueMemberS{Value: v.String()}, nil
	case reflect.Int, reflect.Int64:
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(v.Int(), 10)}, nil
	case reflect.Bool:
		return &types.AttributeValueMemberBOOL{Value: v.Bool()}, nil
	case reflect.Struct:
		it, err := encodeStruct(v)
		return &types.AttributeValueMemberM{Value: it}, err
	case reflect.Slice:
		switch {
		case v.IsNil():
			return &types.AttributeValueMemberNULL{Value: true}, nil
		case v.Type().Elem().Kind() == reflect.Uint8:
			return &types.AttributeValueMemberB{Value: v.Bytes()}, nil
		}
		list := make([]types.AttributeValue, v.Len())
		for i := range list {
			var err error
			if list[i], err = encode(v.Index(i)); err != nil {
				return nil, err
			}
		}
		return &types.AttributeValueMemberL{Value: list}, nil
	case reflect.Map:
		texts, ok := v.Interface().(map[string]string)
		if !ok {
			break
		}
		return encodeTexts(texts)
	}
	return nil, fmt.Errorf("no item has a %s", v.Type())
}

func encodeTexts(texts map[string]string) (types.AttributeValue, error) {
	if texts == nil {
		return &types.AttributeValueMemberNULL{Value: true}, nil
	}
	it := make(item.Item, len(texts))
	for name, t := range texts {
		if name == "" {
			return nil, errors.New("a map has an empty name")
		}
		it[name] = item.Text(t)
	}
	return &types.AttributeValueMemberM{Value: it}, nil
}

func decodeStruct(it item.Item, v reflect.Value) error {
	for _, a := range attributesOf(v.Type()) {
		if value, ok := it[a.name]; ok {
			if err := decode(value, v.Field(a.index)); err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
		}
	}
	return nil
}

func decode(value types.AttributeValue, v reflect.Value) error {
	kind := v.Kind()
	switch value := value.(type) {
	case *types.AttributeValueMemberS:
		if kind == reflect.String {
			v.SetString(value.Value)
			return nil
		}
	case *types.AttributeValueMemberN:
		if kind == reflect.Int || kind == reflect.Int64 {
			n, err := strconv.ParseInt(value.Value, 10, 64)
			v.SetInt(n)
			return err
		}
	case *types.AttributeValueMemberBOOL:
		if kind == reflect.Bool {
			v.SetBool(value.Value)
			return nil
		}
	case *types.AttributeValueMemberB:
		if kind == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(value.Value)
			return nil
		}
	case *types.AttributeValueMemberL:
		if kind == reflect.Slice {
			return decodeList(value.Value, v)
		}
	case *types.AttributeValueMemberM:
		if kind == reflect.Struct {
			return decodeStruct(value.Value, v)
		}
		if kind == reflect.Map {
			return decodeTexts(value.Value, v)
		}
	case *types.AttributeValueMemberNULL:
		v.SetZero()
		return nil
	}
	return fmt.Errorf("%T is no %s", value, v.Type())
}

func decodeList(list []types.AttributeValue, v reflect.Value) error {
	v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
	for i, value := range list {
		if err := decode(value, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func decodeTexts(it item.Item, v reflect.Value) error {
	texts := make(map[string]string, len(it))
	for name, value := range it {
		t, ok := value.(*types.AttributeValueMemberS)
		if !ok {
			return fmt.Errorf("%s: %T is no text", name, value)
		}
		texts[name] = t.Value
	}
	v.Set(reflect.ValueOf(texts))
	return nil
}

func keepUnknown(after, before item.Item) {
	known := runAttributes()
	for name, v := range before {
		if _, ok := known[name]; !ok {
			after[name] = v
		}
	}
}

var runAttributes = sync.OnceValue(func() map[string]struct{} {
	names := map[string]struct{}{}
	for _, a := range attributesOf(reflect.TypeFor[Run]()) {
		names[a.name] = struct{}{}
	}
	return names
})
