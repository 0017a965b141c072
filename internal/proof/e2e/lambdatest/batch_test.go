package lambdatest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/functions/eventsource"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

// The three programs that are deployed deliver webhooks: those of eager and of deferred triggers, and one that fails at first.
func TestDeployedPrograms_DeliverThroughQueueRelayAndTick(t *testing.T) {
	t.Parallel()
	i := install(t, installOptions{name: "webhooks", streamed: true})
	var received, refused atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "grumpy") && refused.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		received.Add(1)
	}))
	defer receiver.Close()
	changes := map[string]string{webhooks.EndpointsVariable: "shop=" + receiver.URL, webhooks.SecretVariable: "secret"}
	bridge := i.deploy("bridge", functions.RoleBridge, lambdatest.Options{}, changes)
	i.mapQueue(bridge, eventsource.QueueOptions{})
	i.mapStream(i.deploy("relay", functions.RoleRelay, lambdatest.Options{}, changes))
	i.tickEvery(i.deploy("tick", functions.RoleTick, lambdatest.Options{}, changes), 5*time.Second)

	const each = 12
	var ids []runlane.RunID
	trigger := func(id, payload string, options *runlane.TriggerOptions) {
		result, err := i.Trigger(t.Context(), webhooks.Deliver.With(webhooks.Delivery{
			ID: id, Event: "order", Endpoint: "shop", Payload: webhooks.Payload(payload),
		}), options)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, result.Run.ID)
	}
	for n := range each {
		trigger(fmt.Sprint("eager-", n), `{"a": 1}`, nil)
		trigger(fmt.Sprint("deferred-", n), `{"a": 1}`, &runlane.TriggerOptions{Deferred: true})
	}
	trigger("grumpy", `{"who": "grumpy"}`, nil)
	i.succeeds(ids...)
	equal(t, "webhooks", received.Load(), int64(len(ids)))
	i.sound()
}
