package cli_test

import (
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
)

// startFlow starts a flow: a letter is printed, sent and reported, a failure undone. "person" is asked for approval in place of all that.
func (w *world) startFlow(t *testing.T, line string) {
	t.Helper()
	id, to, _ := strings.Cut(line, " ")
	f := runlane.NewFlow(runlane.FlowID(id))
	if to == "person" {
		f.Add("approve", watched.With(struct{}{}), nil)
	} else {
		printed := f.Add("print", welcome.With(letter{To: to}), nil)
		sent := f.Add("send", welcome.With(letter{To: "ada"}), &runlane.NodeOptions{After: []runlane.Node{printed}})
		undone := f.Add("undo", welcome.With(letter{To: "bin"}), &runlane.NodeOptions{After: []runlane.Node{printed}, If: runlane.IfFailed})
		f.Add("report", welcome.With(letter{To: "desk"}), &runlane.NodeOptions{After: []runlane.Node{sent, undone}, If: runlane.Always})
	}
	rt, err := w.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(t.Context())
	if _, err := rt.StartFlow(t.Context(), f, nil); err != nil {
		t.Fatal(err)
	}
}
