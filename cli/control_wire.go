package cli

import (
	"bufio"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// introduceTime bounds how long both sides take to prove that they know the token.
const introduceTime = 3 * time.Second

const proofBytes = sha256.Size

// errStranger is a peer that does not know the token.
var errStranger = errors.New("the other side does not know the token")

// The token never travels. Each side sends a random challenge, and proves that it knows the token by a keyed hash of
// both challenges. The client goes first: a peer without the token learns only a random number from a session, and a
// process that listens at the address of an ended session learns nothing about a command.

// introduce is the client's half.
func introduce(connection net.Conn, token string) error {
	if err := connection.SetDeadline(time.Now().Add(introduceTime)); err != nil {
		return err
	}
	var theirs, ours, answer [proofBytes]byte
	if _, err := io.ReadFull(connection, theirs[:]); err != nil {
		return err
	}
	_, _ = rand.Read(ours[:]) // never fails
	if _, err := connection.Write(append(ours[:], proof(token, "client", theirs, ours)...)); err != nil {
		return err
	}
	if _, err := io.ReadFull(connection, answer[:]); err != nil {
		return err
	}
	if !hmac.Equal(answer[:], proof(token, "session", theirs, ours)) {
		return errStranger
	}
	return connection.SetDeadline(time.Time{})
}

// admit is the session's half.
func admit(connection net.Conn, token string) error {
	if err := connection.SetDeadline(time.Now().Add(introduceTime)); err != nil {
		return err
	}
	var ours, theirs, answer [proofBytes]byte
	_, _ = rand.Read(ours[:]) // never fails
	if _, err := connection.Write(ours[:]); err != nil {
		return err
	}
	if _, err := io.ReadFull(connection, theirs[:]); err != nil {
		return err
	}
	if _, err := io.ReadFull(connection, answer[:]); err != nil {
		return err
	}
	if !hmac.Equal(answer[:], proof(token, "client", ours, theirs)) {
		return errStranger
	}
	if _, err := connection.Write(proof(token, "session", ours, theirs)); err != nil {
		return err
	}
	return connection.SetDeadline(time.Time{})
}

func proof(token, side string, session, client [proofBytes]byte) []byte {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("runlane dev 1 " + side))
	mac.Write(session[:])
	mac.Write(client[:])
	return mac.Sum(nil)
}

// frame is one message. A client sends a call, then answers and perhaps a cancellation; a session sends output and
// questions, and finally the exit code.
type frame struct {
	Call   *remoteCall  `json:"call,omitempty"`
	Answer *inputAnswer `json:"answer,omitempty"`
	Cancel bool         `json:"cancel,omitempty"`

	Stdout []byte     `json:"stdout,omitempty"`
	Stderr []byte     `json:"stderr,omitempty"`
	Input  *inputWish `json:"input,omitempty"`
	Exit   *int       `json:"exit,omitempty"`
}

// remoteCall is a command line with everything that it depends on.
type remoteCall struct {
	Name        string            `json:"name"`
	Args        []string          `json:"args"`
	Environment map[string]string `json:"environment"`
	Stdin       int               `json:"stdin"` // columns of its terminal, 0 for none
	Stdout      int               `json:"stdout"`
	Stderr      int               `json:"stderr"`
}

// remoteEnvironment are the variables of the caller that a command reads.
var remoteEnvironment = []string{"NO_COLOR", "TERM", "RUNLANE_ACTOR", "USER"}

// inputWish asks the client for input, which the client reads with its own permissions when a command wants it. Stream
// 0 is stdin; the others are files: each begins with a wish that names the file and ends with one that closes it.
type inputWish struct {
	Stream int    `json:"stream"`
	Open   string `json:"open,omitempty"`
	Close  bool   `json:"close,omitempty"`
	Bytes  int    `json:"bytes,omitempty"`
}

// inputAnswer answers a wish.
type inputAnswer struct {
	Data  []byte `json:"data,omitempty"`
	End   bool   `json:"end,omitempty"`
	Error string `json:"error,omitempty"`
}

// link carries frames over a connection, one JSON object a line. Several goroutines may call send, one may call
// receive.
type link struct {
	connection net.Conn
	decoder    *json.Decoder

	mu      sync.Mutex
	encoder *json.Encoder
}

func newLink(connection net.Conn) *link {
	return &link{
		connection: connection,
		decoder:    json.NewDecoder(bufio.NewReader(connection)),
		encoder:    json.NewEncoder(connection),
	}
}

func (l *link) send(f *frame) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.encoder.Encode(f)
}

func (l *link) receive() (f *frame, err error) {
	f = &frame{}
	return f, l.decoder.Decode(f)
}
