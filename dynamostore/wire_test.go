package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runlane/runlane-go"
)

// wire stands below the SDK. It keeps the bodies of transactions, and answers them as the script says; every other request finds
// nothing.
type wire struct {
	script []wireAnswer // the last one answers what comes after it
	bodies [][]byte
}

// wireAnswer is what comes back: an error, or a status with a body.
type wireAnswer struct {
	status int
	body   string
	err    error
}

var wireDone = wireAnswer{status: http.StatusOK, body: `{}`}

func (a wireAnswer) response() (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{
		StatusCode: a.status, Body: io.NopCloser(strings.NewReader(a.body)), Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
	}, nil
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.Header.Get("X-Amz-Target") != "DynamoDB_20120810.TransactWriteItems" {
		return wireDone.response()
	}
	if int64(len(body)) != r.ContentLength {
		return nil, errors.New("the length does not fit the body")
	}
	w.bodies = append(w.bodies, body)
	return w.script[min(len(w.bodies), len(w.script))-1].response()
}

func (w *wire) store() *Store {
	return New(dynamodb.New(dynamodb.Options{
		HTTPClient: w, Region: "us-east-1", BaseEndpoint: aws.String("http://wire.invalid"), DisableValidateResponseChecksum: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	}), "table", nil)
}

// The SDK encodes maps in Go's random order: of two encodings of one commit nearly none are the same. DynamoDB refuses other bytes under
// the token of a commit as a mismatch of parameters.
func TestTransaction_SentAgain_IsTheSameBytes(t *testing.T) {
	t.Parallel()
	reset := wireAnswer{err: errLostAnswer}
	down := wireAnswer{status: http.StatusServiceUnavailable, body: `{"__type":"com.amazonaws.dynamodb.v20120810#ServiceUnavailable"}`}
	busy := wireAnswer{status: http.StatusBadRequest, body: `{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException"}`}
	met := wireAnswer{status: http.StatusBadRequest, body: `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException",` +
		`"CancellationReasons":[{"Code":"TransactionConflict"},{"Code":"None"}]}`}
	synctest.Test(t, func(t *testing.T) {
		w := &wire{script: []wireAnswer{met, reset, busy, down, met, wireDone}}
		if _, err := w.store().AppendRunEvents(t.Context(), creation(t, "run_1")); err != nil {
			t.Fatal(err)
		}
		if len(w.bodies) != len(w.script) {
			t.Errorf("sent %d times, want %d: the SDK is not to repeat anything by itself", len(w.bodies), len(w.script))
		}
		for i, body := range w.bodies {
			if !bytes.Equal(body, w.bodies[0]) {
				t.Errorf("sending %d is not the same bytes as the first:\n%s\n%s", i+1, w.bodies[0], body)
			}
		}
	})
}

// The SDK must not repeat a write unseen: of an answer that it did not hear, the one that it heard afterwards tells nothing.
func TestTransaction_UnheardThenRefused_IsUnknownAndNotRefused(t *testing.T) {
	t.Parallel()
	expired := wireAnswer{status: http.StatusBadRequest, body: `{"__type":"com.amazon.coral.service#ExpiredTokenException","message":"expired"}`}
	synctest.Test(t, func(t *testing.T) {
		w := &wire{script: []wireAnswer{{err: errLostAnswer}, expired}}
		_, err := w.store().AppendRunEvents(t.Context(), creation(t, "run_1"))
		e, ok := errors.AsType[*runlane.Error](err)
		if !ok || e.Code != runlane.ErrStorageUnavailable || e.Meta["outcome"] != "unknown" || !strings.Contains(e.Message, "expired") {
			t.Errorf("%+v", err)
		}
	})
}

// The SDK gives an error outside DynamoDB's model no fault. Nothing was written: sending it again, or an unknown outcome, is wrong.
func TestTransaction_RefusedOutsideTheModel_IsSentOnceAndKnown(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]runlane.ErrorCode{
		"com.amazon.coral.validate#ValidationException":  runlane.ErrContractViolation,
		"com.amazon.coral.service#AccessDeniedException": runlane.ErrStorageUnavailable,
		"com.amazon.coral.service#ExpiredTokenException": runlane.ErrStorageUnavailable,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &wire{script: []wireAnswer{{status: http.StatusBadRequest, body: `{"__type":"` + code + `","message":"no"}`}}}
			_, err := w.store().AppendRunEvents(t.Context(), creation(t, "run_1"))
			e, ok := errors.AsType[*runlane.Error](err)
			if !ok || e.Code != want || e.Meta["outcome"] != "not committed" || len(w.bodies) != 1 {
				t.Errorf("%s: sent %d times: %+v", code, len(w.bodies), err)
			}
		})
	}
}
