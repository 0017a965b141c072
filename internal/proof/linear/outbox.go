package linear

import (
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Operations on an outbox row.
const (
	linearClaimRow = "claim row"
	linearPublish  = "publish"
	linearFail     = "fail"
)

// claimedWakeup is an outbox row: due at an instant, or under the claim of token until then, or published.
type claimedWakeup struct {
	token     string
	due       int64
	published bool
}

func outboxSubject() linearSubject {
	return linearSubject{
		needs:   func(c lane.StorageCapabilities) bool { return c.PersistsOutbox },
		prepare: prepareRows,
		act:     actOnRow,
		settle:  settleRows,
		begin:   claimedWakeup{due: noon.UnixMilli()},
		step:    stepRow,
		meets:   []string{"claim row done", "fail done", "publish done"},
	}
}

func prepareRows(h *linearHistory) {
	for i := range h.o.Keys {
		h.rows[h.keyName(i)] = h.create().Outbox[0].ID
	}
}

func actOnRow(c *linearClient) {
	key := c.key()
	tokens := c.tokens[key]
	if len(tokens) == 0 || c.chance(0.3) {
		claimWakeup(c, key, c.tick())
		return
	}
	token := tokens[len(tokens)-1]
	if c.chance(0.3) {
		token = tokens[c.choose.IntN(len(tokens))]
	}
	markRow(c, key, c.markKind(), token)
}

func claimWakeup(c *linearClient, key string, at time.Time) {
	until := at.Add(time.Duration(c.o.Keys) * 8 * time.Second) // others take over while publishers work
	answer, _ := c.writes(
		linearCall{Key: key, Kind: linearClaimRow, At: at.UnixMilli(), Until: until.UnixMilli()},
		func(s lane.Storage) (linearAnswer, error) {
			rows, err := s.ClaimOutboxMessages(c.ctx(), &lane.ClaimOutboxCommand{
				Environment: c.env, IDs: []string{c.rows[key]}, At: at, ClaimUntil: until, Limit: 1,
			})
			if err != nil || len(rows) == 0 {
				return linearAnswer{Result: linearNone}, err
			}
			return linearAnswer{Result: linearDone, Token: rows[0].ClaimToken}, nil
		},
	)
	if answer.Token != "" {
		c.tokens[key] = append(c.tokens[key], answer.Token)
		if !c.quiet && c.chance(0.5) {
			markRow(c, key, c.markKind(), answer.Token)
		}
	}
}

// markKind is seldom the one after which the row never changes.
func (c *linearClient) markKind() string {
	if c.chance(0.03) {
		return linearPublish
	}
	return linearFail
}

// markRow uses any claim that the client was ever given. A failed row is due again at once; the instant tells one
// failure from another.
func markRow(c *linearClient, key, kind, token string) {
	at := c.tick()
	ref := lane.OutboxRef{ID: c.rows[key], ClaimToken: token}
	_, _ = c.writes(
		linearCall{Key: key, Kind: kind, Token: token, At: at.UnixMilli()},
		func(s lane.Storage) (linearAnswer, error) {
			var err error
			if kind == linearPublish {
				err = s.MarkOutboxMessagesPublished(c.ctx(), &lane.MarkPublishedCommand{
					Environment: c.env,
					At:          at,
					Messages:    []lane.OutboxRef{ref},
				})
			} else {
				err = s.MarkOutboxMessagesFailed(c.ctx(), &lane.MarkFailedCommand{
					Environment: c.env,
					At:          at,
					Messages: []lane.OutboxFailure{{
						OutboxRef:       ref,
						Attempts:        1,
						Failure:         runlane.Failure{Code: runlane.ErrTransportPublishFailed},
						NextAvailableAt: at,
					}},
				})
			}
			if isConflict(err, runlane.ConflictOutboxClaim) {
				return linearAnswer{Result: linearRefused}, nil
			}
			return linearAnswer{Result: linearDone}, err
		},
	)
}

// settleRows claims every row when all claims are over: rows that were not published are found, published ones are not.
func settleRows(c *linearClient) {
	for i := range c.o.Keys {
		key := c.keyName(i)
		claimWakeup(c, key, c.tick().Add(time.Hour))
		if tokens := c.tokens[key]; len(tokens) > 0 {
			markRow(c, key, linearPublish, tokens[0])
		}
		claimWakeup(c, key, c.tick().Add(24*time.Hour))
	}
}

// stepRow is the contract of an outbox row, one operation after the other. While others act, a claim may come back
// empty.
func stepRow(state any, call linearCall, answer linearAnswer) (bool, any) {
	s := state.(claimedWakeup)
	unknown := answer.Result == linearUnknown
	if call.Kind == linearClaimRow {
		due := !s.published && s.due <= call.At
		switch {
		case answer.Result == linearNone:
			return !call.Quiet || !due, s
		case !due:
			return unknown, s
		case unknown: // no client knows its token
			return true, claimedWakeup{token: "?", due: call.Until}
		default:
			return true, claimedWakeup{token: answer.Token, due: call.Until}
		}
	}
	holds := s.token == call.Token
	switch {
	case answer.Result == linearRefused:
		return !holds, s
	case !holds:
		return unknown, s
	case call.Kind == linearPublish:
		return true, claimedWakeup{published: true}
	default:
		return true, claimedWakeup{due: call.At}
	}
}
