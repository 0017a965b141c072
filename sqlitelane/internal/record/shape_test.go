package record

import (
	"reflect"
	"testing"

	"github.com/runlane/runlane-go"
)

func TestFits_NoticesAFieldThatWouldBeLost(t *testing.T) {
	t.Parallel()
	if err := Fits(); err != nil {
		t.Error(err)
	}
	type later struct{ Token, WorkerID, Region string }
	err := checkFields(map[reflect.Type]string{reflect.TypeFor[later](): "Token WorkerID"})
	if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Error(err)
	}
}
