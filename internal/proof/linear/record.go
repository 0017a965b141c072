package linear

import (
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Operations on a record of a run.
const (
	linearKeep    = "keep"
	linearReplace = "replace"
)

// keptRecord is a record: what was recorded, by which attempt and when. "" for none.
type keptRecord struct {
	value       string
	attempt, at int64
}

func recordSubject() linearSubject {
	return linearSubject{
		needs:   func(c lane.StorageCapabilities) bool { return c.SuspendsRuns },
		prepare: prepareLeases,
		act:     actOnRecord,
		settle:  settleRecords,
		begin:   keptRecord{},
		step:    stepRecord,
		meets:   []string{"keep done", "keep refused", "replace done", "replace refused", "read done"},
	}
}

// replaced reports a key whose record is a checkpoint: one of two.
func replaced(key string) bool { return key[len(key)-1]%2 == 0 }

func actOnRecord(c *linearClient) {
	key := c.key()
	if c.chance(0.3) {
		readRecord(c, key)
		return
	}
	keepRecord(c, key)
}

func readRecord(c *linearClient, key string) {
	c.reads(linearCall{Key: key, Kind: linearRead}, func(s lane.Storage) (linearAnswer, error) {
		page, err := s.ListRecords(c.ctx(), &lane.RecordQuery{
			PageQuery: lane.PageQuery{Environment: c.env}, RunID: c.runs[key], CreatedAt: noon,
		})
		if err != nil {
			return linearAnswer{}, err
		}
		answer := linearAnswer{Result: linearDone}
		if len(page.Items) > 0 {
			answer.Token = string(page.Items[0].Result)
		}
		return answer, nil
	})
}

// keepRecord records as a worker of some attempt does, also one that was replaced meanwhile.
func keepRecord(c *linearClient, key string) {
	at, attempt := c.tick(), 1+c.choose.IntN(3)
	call := linearCall{
		Key: key, Kind: linearKeep, Token: c.NewToken(), Expected: int64(attempt), At: at.UnixMilli(),
	}
	record := lane.StepRecord{
		Name: "record", Kind: runlane.StepKindStep, Attempt: attempt, At: at, Result: []byte(call.Token),
	}
	if replaced(key) {
		call.Kind, record.Kind = linearReplace, runlane.StepKindCheckpoint
	}
	c.writes(call, func(s lane.Storage) (linearAnswer, error) {
		kept, err := s.KeepRecord(c.ctx(), &lane.KeepCommand{
			RunKey:    c.runKey(c.runs[key]),
			CreatedAt: noon,
			Record:    record,
			Replace:   replaced(key),
		})
		if err != nil {
			return linearAnswer{}, err
		}
		answer := linearAnswer{Result: linearDone, Token: string(kept.Result)}
		if answer.Token != call.Token {
			answer.Result = linearRefused
		}
		return answer, nil
	})
}

// settleRecords reads each, keeps once more, and reads again.
func settleRecords(c *linearClient) {
	for i := range c.o.Keys {
		key := c.keyName(i)
		readRecord(c, key)
		keepRecord(c, key)
		readRecord(c, key)
	}
}

// stepRecord is the contract of records, one operation after the other.
func stepRecord(state any, call linearCall, answer linearAnswer) (bool, any) {
	s := state.(keptRecord)
	if call.Kind == linearRead {
		return answer.Token == s.value, s
	}
	fits := s.value == "" || call.Kind == linearReplace &&
		(s.attempt < call.Expected || s.attempt == call.Expected && s.at <= call.At)
	after := s
	if fits {
		after = keptRecord{call.Token, call.Expected, call.At}
	}
	return answer.Result == linearUnknown || answer.Token == after.value, after
}
