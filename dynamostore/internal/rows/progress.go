package rows

import (
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

const ProgressSK = "note"

// Progress is the last progress note of a run. It sorts before the payload: reading a run does not read it.
type Progress struct {
	PK      string `dynamodbav:"pk"`
	SK      string `dynamodbav:"sk"`
	At      Millis `dynamodbav:"at"`
	Attempt int    `dynamodbav:"an"`
	Note    string `dynamodbav:"nt"`
}

// ProgressWrites returns the note and a check of the lease. It does not overwrite a later note.
func ProgressWrites(key lane.RunKey, leaseToken string, p runlane.Progress) ([]item.Write, error) {
	note, err := Marshal(Progress{PK: RunPK(key), SK: ProgressSK, At: ToMillis(p.At), Attempt: p.Attempt, Note: p.Note})
	if err != nil {
		return nil, err
	}
	run := item.Key(RunPK(key), RunSK)
	return []item.Write{
		{Before: run, After: run, Condition: item.Equal("lt", item.Text(leaseToken)), Check: true},
		{
			After: note,
			Condition: item.Condition{
				Text:   "attribute_not_exists(#pk) OR #at <= :at",
				Values: item.Item{":at": note["at"]},
			},
		},
	}, nil
}
