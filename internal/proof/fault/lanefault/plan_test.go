package lanefault_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/fault/lanefault"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// A method of the contract that no fault reached would be one that all suites under faults leave out.
func TestPlan_ReachesEveryMethod(t *testing.T) {
	t.Parallel()
	plan := lanefault.New(t, 1, lanefault.Pace{}, lanefault.Rule{Kind: lanefault.Before, Rate: 1})
	for adapter, contract := range map[any]reflect.Type{
		lanefault.Storage(lane.UnimplementedStorage{}, plan): reflect.TypeFor[lane.Storage](),
		lanefault.Transport(memlane.NewTransport(nil), plan): reflect.TypeFor[lane.Transport](),
	} {
		for i := range contract.NumMethod() {
			m := contract.Method(i)
			if !slices.Contains(lanefault.Methods(), m.Name) {
				continue
			}
			arguments := []reflect.Value{reflect.ValueOf(t.Context())}
			for j := 1; j < m.Type.NumIn(); j++ {
				if in := m.Type.In(j); in.Kind() == reflect.Pointer {
					arguments = append(arguments, reflect.New(in.Elem()))
				} else {
					arguments = append(arguments, reflect.Zero(in))
				}
			}
			out := reflect.ValueOf(adapter).MethodByName(m.Name).Call(arguments)
			err, _ := out[len(out)-1].Interface().(error)
			if e, ok := errors.AsType[*runlane.Error](err); !ok || !errors.Is(err, lanefault.ErrPlanned) || e.Meta["outcome"] != "not committed" {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
	}
}
