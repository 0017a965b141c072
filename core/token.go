package core

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
)

const (
	// maxTokenBytes bounds a token before it is looked at: one of the longest ids and names has less.
	maxTokenBytes = 4 << 10
	// tokenMark begins every token, and what is signed: a token is never taken for anything else that a key signs.
	tokenMark = "rlt1."
)

// tokenClaims are what a token says. Its fields are short because links are.
type tokenClaims struct {
	Environment string        `json:"e"`
	RunID       runlane.RunID `json:"r"`
	CreatedAt   int64         `json:"c"` // of the run, in milliseconds: an id that is used again is another run
	Name        string        `json:"n"`
	ExpiresAt   int64         `json:"x"` // milliseconds

	// Of a run that is a node: its place, and when its flow was created. The answer is for the latest run of the node.
	Flow     runlane.FlowID `json:"f,omitempty"`
	FlowFrom int64          `json:"g,omitempty"`
	Node     string         `json:"o,omitempty"`
}

// id is the same for every token of a run and a name, or of a node and a name: of all of them one answer counts.
func (c *tokenClaims) id() string {
	said := fmt.Appendf(nil, "%q %q %d %q", c.Environment, c.RunID, c.CreatedAt, c.Name)
	if c.Flow != "" {
		said = fmt.Appendf(nil, "node %q %q %d %q %q", c.Environment, c.Flow, c.FlowFrom, c.Node, c.Name)
	}
	sum := sha256.Sum256(said)
	return "token_" + hex.EncodeToString(sum[:16])
}

// Token implements runlane.WaitHost.
func (x *execution) Token(name string, ttl time.Duration) (string, error) {
	if err := firstError(x.rt.hasTokenKeys(), x.rt.suspends()); err != nil {
		return "", runlane.Permanent(err) // no other attempt of this program could
	}
	claims := tokenClaims{
		Environment: x.rt.environment.Name(),
		RunID:       x.started.ID,
		CreatedAt:   x.started.CreatedAt.UnixMilli(),
		Name:        name,
		ExpiresAt:   x.rt.now().Add(ttl).UnixMilli(),
	}
	if source := x.started.Source; source.Type == runlane.SourceFlow {
		claims.Flow, claims.Node, claims.FlowFrom = source.FlowID, source.Node, source.CreatedAt.UnixMilli()
	}
	return claims.sign(x.rt.tokenKeys[0])
}

func (c *tokenClaims) sign(key []byte) (string, error) {
	var said bytes.Buffer
	encoder := json.NewEncoder(&said)
	encoder.SetEscapeHTML(false) // six bytes for one
	if err := encoder.Encode(c); err != nil {
		return "", err
	}
	text := tokenMark + base64.RawURLEncoding.EncodeToString(bytes.TrimSpace(said.Bytes()))
	return text + "." + base64.RawURLEncoding.EncodeToString(tokenMAC(key, text)), nil
}

func tokenMAC(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// parseToken verifies a token by the keys alone. All that is wrong with one is one error: who tries tokens learns
// nothing.
func parseToken(keys [][]byte, token string) (*tokenClaims, bool) {
	cut := strings.LastIndexByte(token, '.')
	if cut < 0 || len(token) > maxTokenBytes || !strings.HasPrefix(token, tokenMark) {
		return nil, false
	}
	given, err := base64.RawURLEncoding.Strict().DecodeString(token[cut+1:])
	if err != nil {
		return nil, false
	}
	signed := false
	for _, key := range keys {
		signed = hmac.Equal(given, tokenMAC(key, token[:cut])) || signed
	}
	if !signed {
		return nil, false
	}
	said, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimPrefix(token[:cut], tokenMark))
	if err != nil {
		return nil, false
	}
	claims := &tokenClaims{}
	if json.Unmarshal(said, claims) != nil {
		return nil, false
	}
	return claims, true
}

// AnswerToken is what a token allows: one answer to a wait of a run.
type AnswerToken struct {
	// RunID is the run that asked.
	RunID runlane.RunID
	// Node is the run's place, where it is one of a flow: the answer is for the latest run of the node.
	Node runlane.Node
	// Signal is the name of what it asks for.
	Signal string
	// ExpiresAt is when the token ends.
	ExpiresAt time.Time
}

// ReadToken verifies a token from runlane.Signal.Token and says what it is for, without a read of the storage: for a
// page that shows a question before it takes the answer, and for callers that do not know the signal's name. It does
// not say whether an answer was given already. A token that is forged, expired or of another environment is
// runlane.ErrTokenInvalid; a runtime without [Options].TokenKeys is runlane.ErrCapabilityUnsupported. Safe for
// concurrent use.
func (rt *Runtime) ReadToken(token string) (*AnswerToken, error) {
	claims, err := rt.readToken(token)
	if err != nil {
		return nil, err
	}
	return &AnswerToken{
		RunID:     claims.RunID,
		Node:      runlane.Node{Flow: claims.Flow, Name: claims.Node},
		Signal:    claims.Name,
		ExpiresAt: time.UnixMilli(claims.ExpiresAt).UTC(),
	}, nil
}

func (rt *Runtime) readToken(token string) (*tokenClaims, error) {
	if err := rt.hasTokenKeys(); err != nil {
		return nil, err
	}
	claims, ok := parseToken(rt.tokenKeys, token)
	if !ok || claims.Environment != rt.environment.Name() || rt.now().UnixMilli() >= claims.ExpiresAt {
		return nil, invalidToken()
	}
	return claims, nil
}

func invalidToken() error {
	return &runlane.Error{
		Code:    runlane.ErrTokenInvalid,
		Message: "the answer token is not valid here, or not any more",
		Hint:    "ask for a new one; if it is new, compare the token keys and the environment with its maker's",
	}
}

// Answer sends a signal with a token from runlane.Signal.Token, which names the run, or the node of a flow whose latest
// run is meant; the signal's name must be the token's. Of all tokens of a run and a name the first answer counts: the
// same one again is nil, another is runlane.ConflictSignal. options.ID is not used. A token that is forged, expired, or
// of another environment or name is runlane.ErrTokenInvalid, without a read of the storage; a runtime without
// core.Options.TokenKeys is runlane.ErrCapabilityUnsupported. Other errors are those of runlane.Signaler.
func (rt *Runtime) Answer(
	ctx context.Context, token string, value runlane.SignalValue, options *runlane.SignalOptions,
) error {
	if err := rt.gate.enterLate(); err != nil {
		return err
	}
	defer rt.gate.leave()
	claims, err := rt.readToken(token)
	if err != nil {
		return err
	}
	if claims.Name != value.Name() {
		return invalidToken()
	}
	given := runlane.SignalOptions{ID: claims.id()}
	if options != nil {
		given.Actor, given.Receipt = options.Actor, options.Receipt
	}
	if claims.Flow != "" {
		node := runlane.Node{Flow: claims.Flow, Name: claims.Node}
		return rt.signalNode(ctx, node, time.UnixMilli(claims.FlowFrom).UTC(), value, &given)
	}
	s, err := rt.newSignal(claims.RunID, value, &given)
	if err != nil {
		return err
	}
	s.created, s.answer = time.UnixMilli(claims.CreatedAt).UTC(), true
	return s.send(ctx)
}
