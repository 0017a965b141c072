package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/functions/eventsource"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

const (
	initTime    = 30 * time.Second // a busy machine
	pollers     = 2                // of each queue and bridge
	batchSize   = 4
	tickTimeout = 30 * time.Second

	mostComplaints = 300
)

// The functions by name: each bridge has every queue.
const (
	fastBridge = "bridge, clock ahead"
	slowBridge = "bridge, clock behind"
	relayName  = "relay"
	tickName   = "tick"
)

// fleet is the functions that are deployed, and what invokes them. A new version takes the place of the old one between invocations; what
// invokes them stays, as event source mappings do.
type fleet struct {
	world    *world
	mappings lambdatest.Mappings

	version sync.RWMutex // held for reading while a function is invoked
	mu      sync.Mutex
	current map[string]*lambdatest.Function
	struck  map[int]bool // processes that were struck already
	retired []string     // logs
}

// deploy replaces all functions by ones whose clocks are put forward, and the bridges' are skewed as well.
func (f *fleet) deploy(skew, ahead time.Duration) {
	f.killStruck()
	f.version.Lock()
	defer f.version.Unlock()
	f.close()
	put := func(skew time.Duration) map[string]string {
		return map[string]string{ForwardVariable: ahead.String(), lambdatest.ClockVariable: skew.String()}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.struck = map[int]bool{}
	f.current = map[string]*lambdatest.Function{
		fastBridge: f.function(functions.RoleBridge, functionTimeout, put(skew)),
		slowBridge: f.function(functions.RoleBridge, functionTimeout, put(-skew)),
		relayName:  f.function(functions.RoleRelay, functionTimeout, put(0)),
		tickName:   f.function(functions.RoleTick, tickTimeout, put(0)),
	}
}

func (f *fleet) function(role string, timeout time.Duration, changes map[string]string) *lambdatest.Function {
	return lambdatest.New(lambdatest.Options{
		Program: f.world.bootstrap, Name: role, Environment: f.world.variables(role, changes), Timeout: timeout, InitTimeout: initTime,
	})
}

// close ends the functions.
func (f *fleet) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, function := range f.current {
		function.Close()
		f.retired = append(f.retired, function.Log())
	}
	f.current = nil
}

// countSkewed counts the processes whose clocks were wrong.
func (f *fleet) countSkewed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.world.faults.Note(ClockSkew, len(f.current[fastBridge].Starts())+len(f.current[slowBridge].Starts()))
}

// killStruck ends processes that were told to stop: their deadlines need not be waited for any more.
func (f *fleet) killStruck() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, function := range f.current {
		for _, process := range function.Processes() {
			if f.struck[process] {
				_ = syscall.Kill(process, syscall.SIGKILL) // it may have ended
			}
		}
	}
}

// begin invokes the functions from now on: the bridges with what is in the queues, the relay with what is in the stream, the tick when
// tickEvery says so.
func (f *fleet) begin() {
	w := f.world
	w.t.Helper()
	for _, name := range []string{fastBridge, slowBridge} {
		for _, queue := range w.queues {
			options := &eventsource.QueueOptions{Logger: quiet, Concurrency: pollers, BatchSize: batchSize, Timeout: functionTimeout}
			f.mappings.Queue(w.sqs, queue.URL, options, handler[events.SQSEvent, events.SQSEventResponse](w, name))
		}
	}
	streams := dynamodbstreams.NewFromConfig(w.config(), func(o *dynamodbstreams.Options) { o.BaseEndpoint = aws.String(w.clean.URL()) })
	f.mappings.Stream(w.database(w.clean), streams, w.table, &eventsource.StreamOptions{Logger: quiet},
		handler[events.DynamoDBEvent, events.DynamoDBEventResponse](w, relayName))
	f.mappings.Go(func(ctx context.Context) error {
		for pause(ctx, w.tickEvery()) {
			if !w.tickStopped.Load() {
				_, _ = invoke[map[string]string, any](context.WithoutCancel(ctx), w, tickName, nil) // what fails is done by the next one
			}
		}
		return nil
	})
}

// retire ends what invokes the functions, after the invocations under way, and the functions. It may be called again.
func (f *fleet) retire() {
	f.killStruck()
	f.mappings.Stop()
	f.close()
}

// complaints are the last lines of the functions' logs that are no metrics.
func (f *fleet) complaints() string {
	var lines []string
	for _, log := range f.retired {
		for line := range strings.Lines(log) {
			if !strings.Contains(line, "_aws") {
				lines = append(lines, line)
			}
		}
	}
	return strings.Join(lines[max(0, len(lines)-mostComplaints):], "")
}

// kill ends one process of any function, and reports whether there was one. What is stopped is left to its deadline.
func (f *fleet) kill() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	var processes []int
	for _, function := range f.current {
		processes = append(processes, f.unharmed(function)...)
	}
	if len(processes) == 0 {
		return false
	}
	slices.Sort(processes)
	return f.strike(syscall.SIGKILL, processes[f.world.faults.Pick(len(processes))])
}

// stop stops all processes of one bridge: which one gets the next event is not known. It reports whether there was any.
func (f *fleet) stop() (stopped bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	processes := f.unharmed(f.current[[]string{fastBridge, slowBridge}[f.world.faults.Pick(2)]])
	for _, process := range processes {
		stopped = f.strike(syscall.SIGSTOP, process) || stopped
	}
	return stopped
}

// unharmed are the processes of a function that were not struck yet.
func (f *fleet) unharmed(function *lambdatest.Function) []int {
	return slices.DeleteFunc(function.Processes(), func(process int) bool { return f.struck[process] })
}

func (f *fleet) strike(signal syscall.Signal, process int) bool {
	f.struck[process] = true
	return syscall.Kill(process, signal) == nil
}

// handler is a function as its event source mapping sees it, which delivers some events twice.
func handler[Event, Response any](w *world, name string) func(context.Context, Event) (Response, error) {
	return func(ctx context.Context, event Event) (Response, error) {
		ctx = context.WithoutCancel(ctx) // Lambda's own deadline ends it
		if w.faults.Strikes(DuplicateDelivery, DuplicateRate) {
			var twin sync.WaitGroup
			twin.Go(func() { _, _ = invoke[Event, Response](ctx, w, name, event) })
			defer twin.Wait()
		}
		return invoke[Event, Response](ctx, w, name, event)
	}
}

func invoke[Event, Response any](ctx context.Context, w *world, name string, event Event) (response Response, err error) {
	w.fleet.version.RLock()
	defer w.fleet.version.RUnlock()
	w.fleet.mu.Lock()
	function := w.fleet.current[name]
	w.fleet.mu.Unlock()
	answer, err := function.InvokeJSON(ctx, event)
	if err != nil {
		return response, err
	}
	if answer.Failure == lambdatest.FailureTimeout && answer.Took >= functionTimeout {
		w.faults.Note(KilledAtDeadline, 1)
	}
	return lambdatest.Read[Response](answer)
}
