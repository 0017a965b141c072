package linear

import (
	"errors"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Operations on the mail of a run.
const (
	linearSend  = "send"
	linearCount = "count"
)

// linearTaken answers a send whose name and id are there.
const linearTaken = "taken"

// mailbox is what stands beside a run: a body for each id, "" for none.
type mailbox [3]string

func (m mailbox) count() (n int64) {
	for _, body := range m {
		if body != "" {
			n++
		}
	}
	return n
}

func mailSubject() linearSubject {
	return linearSubject{
		needs:   func(c lane.StorageCapabilities) bool { return c.SuspendsRuns },
		prepare: prepareLeases,
		act:     actOnMail,
		settle:  settleMail,
		begin:   mailbox{},
		step:    stepMail,
		meets:   []string{"send done", "send taken", "send refused", "read done", "count done"},
	}
}

func actOnMail(c *linearClient) {
	key, id := c.key(), c.choose.IntN(len(mailbox{}))
	switch c.choose.IntN(5) {
	case 0:
		readMail(c, key, id)
	case 1:
		countMail(c, key)
	default:
		sendMail(c, key, id)
	}
}

// mailOf reads one signal of a run, and the count, which is of an earlier instant.
func mailOf(c *linearClient, s lane.Storage, key string, id int) (*lane.Mail, error) {
	return s.ReadMail(c.ctx(), &lane.MailQuery{
		RunKey: c.runKey(c.runs[key]), Names: []string{"linear"}, ID: fmt.Sprint("id-", id),
	})
}

func readMail(c *linearClient, key string, id int) {
	c.reads(linearCall{Key: key, Kind: linearRead, Round: id}, func(s lane.Storage) (linearAnswer, error) {
		mail, err := mailOf(c, s, key, id)
		if err != nil {
			return linearAnswer{}, err
		}
		answer := linearAnswer{Result: linearDone}
		if len(mail.Signals) > 0 {
			answer.Token = string(mail.Signals[0].Body)
		}
		return answer, nil
	})
}

// countMail returns how many signals there were, 0 where no answer came.
func countMail(c *linearClient, key string) int64 {
	answer, _ := c.reads(linearCall{Key: key, Kind: linearCount}, func(s lane.Storage) (linearAnswer, error) {
		mail, err := mailOf(c, s, key, 0)
		if err != nil {
			return linearAnswer{}, err
		}
		return linearAnswer{Result: linearDone, Sequence: mail.Count}, nil
	})
	return answer.Sequence
}

// sendMail sends on a count that was read, which another signal may have raised since.
func sendMail(c *linearClient, key string, id int) {
	call := linearCall{Key: key, Kind: linearSend, Round: id, Token: c.NewToken(), Expected: countMail(c, key)}
	at := c.tick()
	c.writes(call, func(s lane.Storage) (linearAnswer, error) {
		_, err := s.SendSignal(c.ctx(), &lane.SignalCommand{
			RunKey:    c.runKey(c.runs[key]),
			CreatedAt: noon,
			Count:     call.Expected,
			Signal: lane.Signal{
				Name:   "linear",
				ID:     fmt.Sprint("id-", id),
				Number: call.Expected + 1,
				SentAt: at,
				Body:   []byte(call.Token),
			},
		})
		switch {
		case errors.Is(err, runlane.ConflictSignal):
			return linearAnswer{Result: linearTaken}, nil
		case errors.Is(err, runlane.ConflictWait):
			return linearAnswer{Result: linearRefused}, nil
		case err != nil:
			return linearAnswer{}, err
		}
		return linearAnswer{Result: linearDone}, nil
	})
}

// settleMail sends what is missing, and reads all.
func settleMail(c *linearClient) {
	for i := range c.o.Keys {
		key := c.keyName(i)
		for id := range (mailbox{}) {
			sendMail(c, key, id)
			readMail(c, key, id)
		}
		countMail(c, key)
	}
}

// stepMail is the contract of signals, one operation after the other: each name and id has one body for ever, and who
// sends on another count than there is changes nothing.
func stepMail(state any, call linearCall, answer linearAnswer) (bool, any) {
	m := state.(mailbox)
	there, fits := m[call.Round] != "", m.count() == call.Expected
	switch {
	case call.Kind == linearRead:
		return answer.Token == m[call.Round], m
	case call.Kind == linearCount:
		return answer.Sequence == m.count(), m
	case answer.Result == linearTaken:
		return there, m
	case answer.Result == linearRefused: // a lost race is reason enough
		return !call.Quiet || !fits, m
	case there || !fits:
		return answer.Result == linearUnknown, m
	}
	m[call.Round] = call.Token
	return true, m
}
