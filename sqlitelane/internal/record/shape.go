package record

import (
	"reflect"
	"strings"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// shapes lists the fields of types stored field by field. A program built with a newer main module may have another
// field, which would be lost silently.
var shapes = map[reflect.Type]string{
	reflect.TypeFor[runlane.Run](): "ID Environment TaskID Queue Status EventSequence Counters Payload Output Sealed " +
		"RunAt StartedAt FinishedAt DispatchedAt DispatchExpiresAt Waiting Failure Lease ConcurrencyKey " +
		"IdempotencyKey Retention Debounced SingletonKey Priority Source TraceCarrier Meta CreatedAt UpdatedAt",
	reflect.TypeFor[runlane.Counters]():     "Attempts Failures Retries Releases",
	reflect.TypeFor[runlane.Failure]():      "Code Message Meta",
	reflect.TypeFor[runlane.Lease]():        "Token WorkerID ExpiresAt",
	reflect.TypeFor[runlane.KeyRetention](): "WhileActive TTL Window UntilDue",
	reflect.TypeFor[runlane.Debounced]():    "Latest Triggers",
	reflect.TypeFor[runlane.Source]():       "Type RunID ScheduleID FireTime Call Depth CreatedAt FlowID Node Round OriginID",
	reflect.TypeFor[runlane.Actor]():        "Type ID",
	reflect.TypeFor[runlane.Event]():        "RunID Environment OccurredAt Actor Meta TraceCarrier Body",
	reflect.TypeFor[runlane.RunCreated](): "TaskID Queue Payload RunAt ConcurrencyKey IdempotencyKey Retention " +
		"Debounced SingletonKey Priority Source",
	reflect.TypeFor[runlane.RunDeliveryRequested](): "Delivery Wait",
	reflect.TypeFor[runlane.Waiting]():              "For Names All Need Until Prompt Questions Schemas",
	reflect.TypeFor[runlane.Delivery](): "Environment RunID Queue AvailableAt RequestedAt DispatchExpiresAt " +
		"TraceCarrier",
	reflect.TypeFor[runlane.RunLeaseClaimed]():   "Lease",
	reflect.TypeFor[runlane.RunLeaseHeartbeat](): "Lease",
	reflect.TypeFor[runlane.RunStarted]():        "Attempt",
	reflect.TypeFor[runlane.RunSucceeded]():      "Attempt Output",
	reflect.TypeFor[lane.RunKey]():               "Environment RunID",
	reflect.TypeFor[lane.Wakeup]():               "RunKey Queue RequestedAt TraceCarrier",
}

// Fits returns runlane.ErrConfigurationInvalid if this version of the lane would lose a field of the main module.
var Fits = sync.OnceValue(func() error { return checkFields(shapes) })

func checkFields(shapes map[reflect.Type]string) error {
	for t, known := range shapes {
		var fields []string
		for i := range t.NumField() {
			fields = append(fields, t.Field(i).Name)
		}
		if strings.Join(fields, " ") != known {
			return &runlane.Error{
				Code:    runlane.ErrConfigurationInvalid,
				Message: "this version of sqlitelane does not know every field of " + t.String(),
				Hint:    "require the version of sqlitelane that belongs to that of the main module",
			}
		}
	}
	return nil
}
