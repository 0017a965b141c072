package dynamostore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/runlane/runlane-go"
)

// Who is not let in has to log in again, to correct something, or to be allowed more: three faults, three ways out, one code.
func TestFailure_TellsExpiredUnknownAndForbiddenApart(t *testing.T) {
	t.Parallel()
	for code, c := range map[string]struct{ message, hint string }{
		"ExpiredTokenException":               {"read run: the credentials for AWS have expired", "log in again"},
		"ExpiredToken":                        {"read run: the credentials for AWS have expired", "log in again"},
		"UnrecognizedClientException":         {"read run: AWS does not accept the credentials", "check the access key"},
		"InvalidSignatureException":           {"read run: AWS does not accept the credentials", "clock"},
		"MissingAuthenticationTokenException": {"read run: AWS does not accept the credentials", "check the access key"},
		"AccessDeniedException":               {"read run: access denied", "let the policy allow the action that the cause names"},
	} {
		cause := &smithy.GenericAPIError{Code: code, Message: "no", Fault: smithy.FaultClient}
		err := New(nil, "runs", nil).db.Failure(t.Context(), "read run", cause)
		e, ok := errors.AsType[*runlane.Error](err)
		if !ok || e.Code != runlane.ErrStorageUnavailable || !e.Retryable || e.Message != c.message || !strings.Contains(e.Hint, c.hint) ||
			!errors.Is(err, cause) {
			t.Errorf("%s became %+v", code, err)
		}
	}
}

// A claim that has to fall into a reservation stops waiting when that is over: not the caller ended it, but an answer that did not come.
func TestFailure_AfterAReservation_BlamesTheStorage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 0, errReservationOver)
	defer cancel()
	err := New(nil, "runs", nil).db.Failure(ctx, "claim", ctx.Err())
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrStorageUnavailable || !e.Retryable || e.Meta["outcome"] != "unknown" || !strings.Contains(e.Message, "reservation") {
		t.Errorf("became %+v", err)
	}
}
