package lanetest

import (
	"testing"

	"github.com/runlane/runlane-go/lane"
)

func signalsFirst(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	for _, id := range []string{"c", "a", "b"} {
		b.send(run, "approved", id, `"`+id+`"`)
	}
	b.send(run, "approved2", "0", "0")
	first := b.mail(run, "approved2", "approved").Signals
	equal(t, "the first, which has not the smallest id", `"c"`, string(first[1].Body))
	equal(t, "its number", int64(1), first[1].Number)
	b.send(run, "later", "2", "2")
	b.send(run, "later", "1", "1")
	equal(t, "the first behind others", "2", b.mail(run, "later").Signals[0].ID)
	named := must(b.storage.ReadMail(b.ctx(), &lane.MailQuery{
		RunKey: b.key(run.ID), Names: []string{"approved"}, ID: "b",
	}))(t)
	equal(t, "the one that is named", `"b"`, string(named.Signals[0].Body))
	equal(t, "its count", int64(6), named.Count)
	none := must(b.storage.ReadMail(b.ctx(), &lane.MailQuery{
		RunKey: b.key(run.ID), Names: []string{"approved"}, ID: "d",
	}))(t)
	equal(t, "one that is not there", 0, len(none.Signals))
}
