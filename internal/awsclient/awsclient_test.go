package awsclient_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/internal/awsclient"
)

// closed is the body of a request as the SDK leaves it when the answer was faster: there was something to read, and it is closed.
type closed struct{ io.Reader }

func (closed) Close() error                     { return nil }
func (closed) WriteTo(io.Writer) (int64, error) { return 0, io.EOF }

// An answer that comes before net/http has looked for the end of the body arrives whole.
func TestKeep_AnswerThatIsFaster_ArrivesWhole(t *testing.T) {
	t.Parallel()
	answer := bytes.Repeat([]byte("answer "), 1<<17)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(answer)
	}))
	t.Cleanup(server.Close)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	for range 20 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, closed{strings.NewReader("question")})
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = int64(len("question"))
		got, err := awsclient.Keep(client).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(got.Body)
		_ = got.Body.Close()
		if err != nil || !bytes.Equal(text, answer) {
			t.Fatalf("%d of %d bytes arrived: %v", len(text), len(answer), err)
		}
	}
}
