package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// clockTolerance is the clock difference that every guarantee allows, plus one second, because HTTP gives whole
// seconds.
const clockTolerance = 2500*time.Millisecond + time.Second

// checkClock compares this machine's clock with the Date header of DynamoDB. It needs no runtime, since AWS refuses the
// signatures of a clock that is far off.
func (s *session) checkClock(ctx context.Context, _ *core.Runtime) (string, error) {
	region := cmp.Or(s.getenv("AWS_REGION"), s.getenv("AWS_DEFAULT_REGION"), "us-east-1")
	endpoint := cmp.Or(
		s.getenv("AWS_ENDPOINT_URL_DYNAMODB"),
		s.getenv("AWS_ENDPOINT_URL"),
		"https://dynamodb."+region+".amazonaws.com",
	)
	var sent time.Time
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { sent = time.Now() }}
	request, err := http.NewRequestWithContext(
		httptrace.WithClientTrace(ctx, trace),
		http.MethodGet,
		endpoint,
		http.NoBody,
	)
	if err != nil {
		return "", &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: "the endpoint is not a URL",
			Hint:    "correct --endpoint-url",
		}
	}
	request.Close = true // there is only one request
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", &runlane.Error{
			Code:    runlane.ErrStorageUnavailable,
			Message: "DynamoDB does not answer",
			Hint:    "check the network, --region and --endpoint-url",
			Cause:   err,
		}
	}
	received := time.Now()
	defer response.Body.Close()
	reported, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return "the endpoint does not send the time", nil
	}
	off := deviation(reported, sent, received)
	if off > clockTolerance {
		return "", &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: fmt.Sprintf("this machine's clock is off by %s", off.Round(100*time.Millisecond)),
			Hint:    "let it be set by NTP: leases and schedules need clocks that differ by less than 2.5 s",
		}
	}
	return "agrees with DynamoDB's to the second", nil
}

// deviation returns 0 if the reported time, cut to whole seconds, can lie between sent and received; otherwise how far
// outside, plus a second for what was cut.
func deviation(reported, sent, received time.Time) time.Duration {
	if before := sent.Sub(reported.Add(time.Second)); before > 0 {
		return before + time.Second
	}
	if after := reported.Sub(received); after > 0 {
		return after + time.Second
	}
	return 0
}
