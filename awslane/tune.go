package awslane

import (
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/runlane/runlane-go/internal/awsclient"
)

const (
	idlePerHost = 64
	dialTimeout = time.Second
	tlsTimeout  = 2 * time.Second

	maxAttempts = 4
	// retryBase and throttleBase are the first waits, before jitter: after a fault of the network or the service, and
	// after a throttle.
	retryBase    = 25 * time.Millisecond
	throttleBase = time.Second
	maxRetryWait = 5 * time.Second
)

// Tune returns cfg with settings for Lambda, where cfg leaves them open. HTTP: as many idle connections to one host as
// a batch has records, a short dial timeout, and responses that are read whole however fast they arrive; the last also
// for the SDK's own client in cfg. Retries: four attempts, with an average wait of 12 ms before the second (the SDK's
// default: a second), and of half a second after a throttle. A retryer, a retry mode other than standard,
// AWS_MAX_ATTEMPTS and AWS_NEW_RETRIES_2026 stay. Retries are for reads and messages: dynamostore repeats writes
// itself.
func Tune(cfg aws.Config) aws.Config {
	cfg = cfg.Copy()
	switch client := cfg.HTTPClient.(type) {
	case nil:
		cfg.HTTPClient = awsclient.Keep(httpClient())
	case *awshttp.BuildableClient:
		if cfg.DefaultsMode == "" || cfg.DefaultsMode == aws.DefaultsModeLegacy { // else the SDK sets its timeouts
			cfg.HTTPClient = awsclient.Keep(client)
		}
	}
	standard := cfg.RetryMode == "" || cfg.RetryMode == aws.RetryModeStandard
	if cfg.Retryer == nil && standard && os.Getenv("AWS_NEW_RETRIES_2026") != "true" {
		attempts := cfg.RetryMaxAttempts
		cfg.Retryer = func() aws.Retryer { return newRetryer(attempts) }
	}
	return cfg
}

func newRetryer(attempts int) aws.Retryer {
	if attempts == 0 {
		attempts = maxAttempts
	}
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		throttles := retry.IsErrorThrottles(o.Throttles)
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, err error) (time.Duration, error) {
			base := retryBase
			if throttles.IsErrorThrottle(err).Bool() {
				base = throttleBase
			}
			return rand.N(min(base<<min(max(attempt-1, 0), 10), maxRetryWait)) + 1, nil // jitter
		})
	})
}

func httpClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).
		WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConnsPerHost = idlePerHost
			t.MaxIdleConns = max(t.MaxIdleConns, 2*idlePerHost)
			t.TLSHandshakeTimeout = tlsTimeout
		})
}
