package core

import (
	"errors"
	"fmt"
	"testing"

	"github.com/runlane/runlane-go"
)

func TestErrorAttrs_AnErrorWithoutACode_IsInternal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want runlane.ErrorCode
		text string
	}{
		{errors.New("who knows"), runlane.ErrInternal, "who knows"},
		{&runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "down", Hint: "wait"}, runlane.ErrStorageUnavailable, "down (wait)"},
		{fmt.Errorf("wrapped: %w", runlane.ErrStorageUnavailable), runlane.ErrStorageUnavailable, "wrapped: storage_unavailable"},
	} {
		attrs := errorAttrs(c.err)
		if len(attrs) != 2 || attrs[0].Key != attrCode || attrs[0].Value.String() != string(c.want) || attrs[1].Value.String() != c.text {
			t.Errorf("%v is logged as %v", c.err, attrs)
		}
	}
	if attrs := errorAttrs(nil); attrs != nil {
		t.Errorf("no error is logged as %v", attrs)
	}
}
