package hostiletest_test

import (
	"context"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sealed"
	"github.com/runlane/runlane-go/sqstransport"
)

// optionStructs are those whose fields the rules are about.
func optionStructs() map[string]reflect.Type {
	return map[string]reflect.Type{
		"core.Options": reflect.TypeFor[core.Options](), "core.DeliveryOptions": reflect.TypeFor[core.DeliveryOptions](),
		"core.WorkOptions": reflect.TypeFor[core.WorkOptions](), "core.TickOptions": reflect.TypeFor[core.TickOptions](),
		"core.ListOptions": reflect.TypeFor[core.ListOptions](), "core.ChangeOptions": reflect.TypeFor[core.ChangeOptions](),
		"core.BulkOptions": reflect.TypeFor[core.BulkOptions](), "core.PruneOptions": reflect.TypeFor[core.PruneOptions](),
		"core.ExportOptions": reflect.TypeFor[core.ExportOptions](), "core.OrphanOptions": reflect.TypeFor[core.OrphanOptions](),
		"core.EventOptions": reflect.TypeFor[core.EventOptions](), "core.World": reflect.TypeFor[core.World](),
		"core.TreeOptions":       reflect.TypeFor[core.TreeOptions](),
		"core.ClaimOptions":      reflect.TypeFor[core.ClaimOptions](),
		"core.LogOptions":        reflect.TypeFor[core.LogOptions](),
		"core.FeedOptions":       reflect.TypeFor[core.FeedOptions](),
		"runlane.TriggerOptions": reflect.TypeFor[runlane.TriggerOptions](), "runlane.TaskOptions": reflect.TypeFor[runlane.TaskOptions[payload]](),
		"runlane.Queue": reflect.TypeFor[runlane.Queue](), "runlane.Retry": reflect.TypeFor[runlane.Retry](),
		"runlane.Exponential": reflect.TypeFor[runlane.Exponential](), "runlane.Schedule": reflect.TypeFor[runlane.Schedule](),
		"runlane.Misfire": reflect.TypeFor[runlane.Misfire](), "runlane.SignalOptions": reflect.TypeFor[runlane.SignalOptions](),
		"runlane.WaitOptions": reflect.TypeFor[runlane.WaitOptions](), "runlane.CallOptions": reflect.TypeFor[runlane.CallOptions](),
		"runlane.NodeOptions": reflect.TypeFor[runlane.NodeOptions](), "runlane.FlowOptions": reflect.TypeFor[runlane.FlowOptions](),
		"core.PauseOptions":      reflect.TypeFor[core.PauseOptions](),
		"core.CancelFlowOptions": reflect.TypeFor[core.CancelFlowOptions](),
		"core.RetryFlowOptions":  reflect.TypeFor[core.RetryFlowOptions](),
		"core.FlowListOptions":   reflect.TypeFor[core.FlowListOptions](),
		"runlane.TokenOptions":   reflect.TypeFor[runlane.TokenOptions](),
		"lane.Options":           reflect.TypeFor[lane.Options](), "memlane.StorageOptions": reflect.TypeFor[memlane.StorageOptions](),
		"lane.StartOptions": reflect.TypeFor[lane.StartOptions](), "memlane.TransportOptions": reflect.TypeFor[memlane.TransportOptions](), "dynamostore.Options": reflect.TypeFor[dynamostore.Options](),
		"sqstransport.Options": reflect.TypeFor[sqstransport.Options](), "awslane.Options": reflect.TypeFor[awslane.Options](),
	}
}

// rules are all of them.
func rules() map[string]rule {
	all := map[string]rule{}
	for _, some := range []map[string]rule{runtimeRules(), operateRules(), signalRules(), flowRules(), definitionRules(), triggerRules(), adapterRules()} {
		maps.Copy(all, some)
	}
	return all
}

const (
	colon       = "a:b"
	unprintable = "a\x00b"
	notUTF8     = "a\xffb"
)

var (
	tooLong = strings.Repeat("k", 600)
	aYear   = 365 * 24 * time.Hour
)

// opening is a refusal by core.Open.
func opening(what string, change func(w *world, o *core.Options)) refusal {
	return invalid(what, func(w *world) []error {
		options := core.Options{}
		change(w, &options)
		return w.open(options)
	})
}

// working is a refusal by Work.
func working(what string, options core.WorkOptions) refusal {
	return invalid(what, func(w *world) []error {
		ctx, cancel := context.WithTimeout(w.ctx(), patience.Limit) // a worker that does begin ends by itself
		defer cancel()
		return []error{w.rt.Work(ctx, &options)}
	})
}

func runtimeRules() map[string]rule {
	return map[string]rule{
		"core.Options.Codec":       refuses(opening("a nil pointer", func(_ *world, o *core.Options) { o.Codec = (*sealed.Codec)(nil) })),
		"core.Options.Environment": refuses(opening("a colon", func(_ *world, o *core.Options) { o.Environment = colon })),
		"core.Options.Handlers": refuses(
			opening("no task", func(_ *world, o *core.Options) { o.Handlers = []runlane.Handler{{}} }),
			opening("no function", func(w *world, o *core.Options) { o.Handlers = []runlane.Handler{{Task: w.task.Definition()}} }),
			opening("one task twice", func(w *world, o *core.Options) { o.Handlers = []runlane.Handler{w.handler(), w.handler()} }),
		),
		"core.Options.HideErrorTexts": legal("both are meant"),
		"core.Options.Hooks":          refuses(opening("nil", func(_ *world, o *core.Options) { o.Hooks = []core.Hook{nil} })),
		"core.Options.Logger":         legal("nil is the default; every other one is the caller's"),
		"core.Options.TokenKeys":      refuses(opening("31 bytes", func(_ *world, o *core.Options) { o.TokenKeys = [][]byte{make([]byte, 31)} })),
		"core.Options.MaxBodyBytes": refuses(
			opening("negative", func(_ *world, o *core.Options) { o.MaxBodyBytes = -1 }),
			opening("more than a body may have", func(_ *world, o *core.Options) { o.MaxBodyBytes = runlane.MaxBodyBytes + 1 }),
		),
		"core.Options.MaxAbandoned": refuses(opening("below -1", func(_ *world, o *core.Options) { o.MaxAbandoned = -2 })),
		"core.Options.Keep": refuses(
			opening("less than an hour", func(_ *world, o *core.Options) { o.Keep.Failed = time.Minute }),
			opening("negative", func(_ *world, o *core.Options) { o.Keep = runlane.KeepAll(-time.Hour) }),
		),
		"core.Options.Metrics":    legal("nil is none; every other one is the caller's, and its panics are recovered"),
		"core.Options.Middleware": refuses(opening("nil", func(_ *world, o *core.Options) { o.Middleware = []runlane.Middleware{nil} })),
		"core.Options.Queues": refuses(
			opening("no name", func(_ *world, o *core.Options) { o.Queues = []runlane.Queue{{}} }).as("queue"),
			opening("no binding", func(_ *world, o *core.Options) { o.Queues = []runlane.Queue{{Name: "elsewhere"}} }).as("queue"),
			opening("two of one name", func(_ *world, o *core.Options) {
				o.Queues = []runlane.Queue{{Name: "bound"}, {Name: "bound", Concurrency: 1}}
			}),
		),
		"core.Options.Schedules": refuses(
			opening("the zero value", func(_ *world, o *core.Options) { o.Schedules = []runlane.Schedule{{}} }),
			opening("one id twice", func(w *world, o *core.Options) { o.Schedules = []runlane.Schedule{w.schedule(), w.schedule()} }),
		),
		"core.Options.Tasks":  refuses(opening("no definition", func(_ *world, o *core.Options) { o.Tasks = []core.ClientTask{{}} })),
		"core.Options.Tracer": legal("nil is none; every other one is the caller's, and its panics are recovered"),
		"core.Options.World":  legal("nil is the real one; see core.World"),

		"core.World.Now":   legal("nil is the real one, every other function is the caller's"),
		"core.World.Rand":  legal("nil is the real one, every other function is the caller's"),
		"core.World.NewID": legal("nil is the real one, every other function is the caller's"),

		"core.DeliveryOptions.Beside":   legal("a flag"),
		"core.DeliveryOptions.Began":    legal("zero is not known; one that is not before the deadline is none either"),
		"core.DeliveryOptions.Deadline": legal("zero is none; one that is near or past hands the wakeup back with ErrNoTime"),
		"core.DeliveryOptions.Follows":  legal("a flag"),
		"core.DeliveryOptions.WorkerID": refuses(failed("unprintable, or too long", func(w *world) []error {
			wakeup := lane.Wakeup{RunKey: lane.RunKey{RunID: "run_1"}, Queue: "default"}
			return []error{
				errorOf(w.rt.ExecuteDelivery(w.ctx(), wakeup, &core.DeliveryOptions{WorkerID: unprintable})),
				errorOf(w.rt.ExecuteDelivery(w.ctx(), wakeup, &core.DeliveryOptions{WorkerID: tooLong})),
			}
		})),

		"core.DeliveryOptions.Queues": refuses(invalid("none, no name, or not bound", func(w *world) (errs []error) {
			for _, names := range [][]runlane.QueueName{{}, {""}, {"elsewhere"}} {
				errs = append(errs, errorOf(w.rt.ExecuteNext(w.ctx(), &core.DeliveryOptions{Queues: names})))
			}
			return errs
		})),

		"core.WorkOptions.Concurrency": refuses(working("negative", core.WorkOptions{Concurrency: -1})),
		"core.WorkOptions.Drain":       legal("both are meant"),
		"core.WorkOptions.DrainReport": legal("nil is none; it is only written to"),
		"core.WorkOptions.DrainWait":   legal("less than 0 is no wait, 0 the default"),
		"core.WorkOptions.Grace":       legal("less than 0 does not wait"),
		"core.WorkOptions.Lease":       refuses(working("too short", core.WorkOptions{Lease: core.MinLease - 1})),
		"core.WorkOptions.NoTick":      legal("both are meant"),
		"core.WorkOptions.Queues": refuses(
			working("empty", core.WorkOptions{Queues: []runlane.QueueName{}}),
			working("no name", core.WorkOptions{Queues: []runlane.QueueName{""}}),
			working("no binding", core.WorkOptions{Queues: []runlane.QueueName{"default", "elsewhere"}}),
			working("no binding, draining", core.WorkOptions{Queues: []runlane.QueueName{"elsewhere"}, Drain: true}),
		),
		"core.WorkOptions.WorkerID": refuses(
			working("unprintable", core.WorkOptions{WorkerID: unprintable}), working("too long", core.WorkOptions{WorkerID: tooLong}),
		),

		"core.TickOptions.Deadline": legal("zero is a minute from now; a past one leaves everything to the next tick, which More says"),
		"core.TickOptions.Repeat":   legal("one round, or as many as are of use"),
		"core.TickOptions.Limit": refuses(failed("out of range", func(w *world) []error {
			return []error{
				errorOf(w.rt.Tick(w.ctx(), &core.TickOptions{Limit: -1})),
				errorOf(w.rt.Tick(w.ctx(), &core.TickOptions{Limit: runlane.MaxPageLimit + 1})),
			}
		})),
	}
}
