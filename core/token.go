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
	// maxTokenBytes limits a token before it is parsed: the longest ids and names need less.
	maxTokenBytes = 4 << 10
	// tokenMark begins every token and is signed with it: a token is no other data signed by the key.
	tokenMark = "rlt1."
)

// tokenClaims are the contents of a token. The JSON names are short because links are.
type tokenClaims struct {
	Environment string        `json:"e"`
	RunID       runlane.RunID `json:"r"`
	CreatedAt   int64         `json:"c"` // of the run, in milliseconds: a reused id is another run
	Name        string        `json:"n"`
	ExpiresAt   int64         `json:"x"` // milliseconds

	// For a node: its place, and when its flow was created. The answer goes to the latest run of the node.
	Flow     runlane.FlowID `json:"f,omitempty"`
	FlowFrom int64          `json:"g,omitempty"`
	Node     string         `json:"o,omitempty"`
}

// id is the same for all tokens of a run, or a node, and a name: one answer counts for all of them.
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
	if err := firstError(x.rt.requireTokenKeys(), x.rt.suspends()); err != nil {
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
	encoder.SetEscapeHTML(false) // an escape has six bytes
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

// parseToken verifies a token by the keys. All faults are one error, so that guessing reveals no details.
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

// AnswerToken describes the use of a token: one answer to a wait of a run.
type AnswerToken struct {
	// RunID is the run that asked.
	RunID runlane.RunID
	// Node is the run's node, if it belongs to a flow: the answer goes to the latest run of the node.
	Node runlane.Node
	// Signal is the name of the expected signal.
	Signal string
	// ExpiresAt is when the token expires.
	ExpiresAt time.Time
}

// ReadToken verifies a token from runlane.Signal.Token and returns its use, without reading the storage: to show the
// question before the answer, or to learn the signal's name. It does not know whether an answer exists. A token that is
// forged, expired or of another environment is runlane.ErrTokenInvalid; a runtime without [Options].TokenKeys is
// runlane.ErrCapabilityUnsupported. Safe for concurrent use.
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
	if err := rt.requireTokenKeys(); err != nil {
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

// Answer sends a signal with a token from runlane.Signal.Token, which names the run, or the flow node with the run. The
// signal must have the token's name. Of all tokens of a run and a name the first answer counts: repeating it is nil,
// another is runlane.ConflictSignal. options.ID is not used. A token that is forged, expired, or of another environment
// or name is runlane.ErrTokenInvalid, without reading the storage; a runtime without core.Options.TokenKeys is
// runlane.ErrCapabilityUnsupported. For other errors see runlane.Signaler.
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
