package causes_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/causes"
)

func TestUntold_IsWhatTheMessageDoesNotContain(t *testing.T) {
	t.Parallel()
	denied := errors.New("access denied")
	told := &runlane.Error{Message: "the table is missing", Cause: denied}
	for name, c := range map[string]struct {
		cause error
		want  []string
	}{
		"no cause":                       {},
		"a text of the message":          {cause: errors.New("table is missing")},
		"another text":                   {cause: denied, want: []string{"access denied"}},
		"told, with a cause that is not": {cause: told, want: []string{"access denied"}},
		"several, one of them told":      {cause: errors.Join(errors.New("missing"), denied), want: []string{"access denied"}},
	} {
		if got := causes.Omitted("open: the table is missing", c.cause); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
