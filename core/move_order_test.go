package core_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// oneOrdered is a transport of which one queue is an ordered one.
type oneOrdered struct {
	lane.Transport

	queue runlane.QueueName
}

func (o oneOrdered) Unwrap() lane.Transport { return o.Transport }

func (o oneOrdered) Ordered(queue runlane.QueueName) bool { return queue == o.queue }

// An import says which queues were ordered ones where the file is from, and are none where it is read.
func TestImport_QueuesThatWereOrdered_AreNamed(t *testing.T) {
	t.Parallel()
	open := func(ordered runlane.QueueName) *core.Runtime {
		l := newLane(t, memlane.NewStorage(nil), oneOrdered{memlane.NewTransport(nil), ordered})
		return openQuiet(t, l, core.Options{Queues: []runlane.Queue{{Name: "mail"}, {Name: "orders"}}})
	}
	var file bytes.Buffer
	if _, err := open("mail").Export(t.Context(), &file, nil); err != nil {
		t.Fatal(err)
	}
	for ordered, want := range map[runlane.QueueName][]runlane.QueueName{"mail": {}, "": {"mail"}, "orders": {"mail"}} {
		moved, err := open(ordered).Import(t.Context(), bytes.NewReader(file.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, moved.Unordered); d != "" {
			t.Errorf("where %q is ordered (-want +got)\n%s", ordered, d)
		}
	}
}
