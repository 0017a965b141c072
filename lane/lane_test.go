package lane_test

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// journal records who was called, in order.
type journal struct{ calls []string }

// storage is a storage of which only the life cycle matters.
type storage struct {
	lane.UnimplementedStorage
	capabilities       lane.StorageCapabilities
	journal            *journal
	startErr, closeErr error
	closeContext       context.Context // inspected by the test
}

func (s *storage) Capabilities() lane.StorageCapabilities { return s.capabilities }

func (s *storage) Start(context.Context) error {
	s.journal.calls = append(s.journal.calls, "start storage")
	return s.startErr
}

func (s *storage) Close(ctx context.Context) error {
	s.journal.calls = append(s.journal.calls, "close storage")
	s.closeContext = ctx
	return s.closeErr
}

// transport is its counterpart.
type transport struct {
	lane.UnimplementedTransport
	capabilities       lane.TransportCapabilities
	journal            *journal
	startErr, closeErr error
}

func (s *transport) Capabilities() lane.TransportCapabilities { return s.capabilities }

func (s *transport) Start(context.Context, lane.StartOptions) error {
	s.journal.calls = append(s.journal.calls, "start transport")
	return s.startErr
}

func (s *transport) Close(context.Context) error {
	s.journal.calls = append(s.journal.calls, "close transport")
	return s.closeErr
}

// receiving is a transport that delivers.
type receiving struct {
	transport
	lane.Receiver
}

// Decorators: all calls go to what they wrap.
type (
	wrappedStorage   struct{ lane.Storage }
	wrappedTransport struct{ lane.Transport }
	sealedTransport  struct{ lane.Transport } // no Unwrap: its inner abilities are not to be found
)

func (w wrappedStorage) Unwrap() lane.Storage     { return w.Storage }
func (w wrappedTransport) Unwrap() lane.Transport { return w.Transport }

func TestNew_FillsDefaults(t *testing.T) {
	t.Parallel()
	s := &storage{capabilities: lane.StorageCapabilities{ReadsRunHistory: true}}
	w := &transport{}
	l, err := lane.New(s, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l.Name != "lane" || l.Environment != "" || !l.OperatorReads || l.ProductionDurable || l.Storage != s || l.Transport != w {
		t.Errorf("got %+v", l)
	}
	l, err = lane.New(s, w, &lane.Options{Name: "mine", Environment: "staging", NoOperatorReads: true})
	if err != nil {
		t.Fatal(err)
	}
	if l.Name != "mine" || l.Environment != "staging" || l.OperatorReads {
		t.Errorf("got %+v", l)
	}
}

func TestNew_OperatorReads_NeedAStorageThatReadsHistory(t *testing.T) {
	t.Parallel()
	l, err := lane.New(&storage{}, &transport{}, nil)
	if err != nil || l.OperatorReads {
		t.Errorf("got %+v, %v", l, err)
	}
}

func TestNew_RefusesAPairThatCannotWork(t *testing.T) {
	t.Parallel()
	s, w := &storage{}, &transport{}
	durableStorage := &storage{capabilities: lane.StorageCapabilities{DurableState: true}}
	durableTransport := &transport{capabilities: lane.TransportCapabilities{DurableDelivery: true}}
	durable := &lane.Options{ProductionDurable: true}
	for name, c := range map[string]struct {
		storage   lane.Storage
		transport lane.Transport
		options   *lane.Options
		want      runlane.ErrorCode // "" for none
	}{
		"no storage":                          {nil, w, nil, runlane.ErrConfigurationInvalid},
		"nil storage behind an interface":     {(*storage)(nil), w, nil, runlane.ErrConfigurationInvalid},
		"no transport":                        {s, nil, nil, runlane.ErrConfigurationInvalid},
		"nil transport behind an interface":   {s, (*transport)(nil), nil, runlane.ErrConfigurationInvalid},
		"neither":                             {nil, nil, nil, runlane.ErrConfigurationInvalid},
		"bad environment":                     {s, w, &lane.Options{Environment: "a:b"}, runlane.ErrConfigurationInvalid},
		"production without durable halves":   {s, w, durable, runlane.ErrConfigurationInvalid},
		"production without durable state":    {s, durableTransport, durable, runlane.ErrConfigurationInvalid},
		"production without durable delivery": {durableStorage, w, durable, runlane.ErrConfigurationInvalid},
		"production":                          {durableStorage, durableTransport, durable, ""},
		"a value as adapter":                  {lane.UnimplementedStorage{}, lane.UnimplementedTransport{}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := lane.New(c.storage, c.transport, c.options)
			if got := runlane.CodeOf(err); got != c.want || (l == nil) != (err != nil) {
				t.Errorf("got %v, %v, want %q", l, err, c.want)
			}
			if e, ok := errors.AsType[*runlane.Error](err); ok && e.Hint == "" && e.Cause == nil {
				t.Errorf("%v says not what to do", e)
			}
		})
	}
	if l, err := lane.New(durableStorage, durableTransport, durable); err != nil || !l.ProductionDurable {
		t.Errorf("got %+v, %v", l, err)
	}
}

func TestLane_CapabilitiesAreThoseOfItsHalves(t *testing.T) {
	t.Parallel()
	want := lane.Capabilities{
		Storage:   lane.StorageCapabilities{DurableState: true, LeasesRuns: true},
		Transport: lane.TransportCapabilities{MessageGrouping: true},
	}
	l, err := lane.New(&storage{capabilities: want.Storage}, &transport{capabilities: want.Transport}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, l.Capabilities()); diff != "" {
		t.Error(diff)
	}
}

func TestLane_LifeCycle(t *testing.T) {
	t.Parallel()
	errStorage, errTransport := errors.New("storage"), errors.New("transport")
	for name, c := range map[string]struct {
		storage   storage
		transport transport
		act       func(context.Context, *lane.Lane) error
		calls     []string
		errs      []error
	}{
		"start": {storage{}, transport{}, startLane, []string{"start storage", "start transport"}, nil},
		"start, storage fails": {
			storage{startErr: errStorage}, transport{}, startLane, []string{"start storage"}, []error{errStorage},
		},
		"start, transport fails: storage is closed": {
			storage{}, transport{startErr: errTransport}, startLane,
			[]string{"start storage", "start transport", "close storage"}, []error{errTransport},
		},
		"start, transport fails and closing storage too": {
			storage{closeErr: errStorage}, transport{startErr: errTransport}, startLane,
			[]string{"start storage", "start transport", "close storage"}, []error{errTransport, errStorage},
		},
		"close": {storage{}, transport{}, closeLane, []string{"close transport", "close storage"}, nil},
		"close, transport fails": {
			storage{}, transport{closeErr: errTransport}, closeLane, []string{"close transport", "close storage"}, []error{errTransport},
		},
		"close, both fail": {
			storage{closeErr: errStorage}, transport{closeErr: errTransport}, closeLane,
			[]string{"close transport", "close storage"}, []error{errTransport, errStorage},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := &journal{}
			c.storage.journal, c.transport.journal = calls, calls
			l, err := lane.New(&c.storage, &c.transport, nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // a start that ends with its context still cleans up
			err = c.act(ctx, l)
			if !slices.Equal(calls.calls, c.calls) {
				t.Errorf("called %q, want %q", calls.calls, c.calls)
			}
			for _, want := range []error{errStorage, errTransport} {
				if errors.Is(err, want) != slices.Contains(c.errs, want) {
					t.Errorf("got %v, want %v", err, c.errs)
				}
			}
			if (err == nil) != (c.errs == nil) {
				t.Errorf("got %v, want %v", err, c.errs)
			}
			if c.transport.startErr != nil && c.storage.closeContext.Err() != nil {
				t.Error("storage is closed under a context that is over")
			}
		})
	}
}

func startLane(ctx context.Context, l *lane.Lane) error { return l.Start(ctx, lane.StartOptions{}) }
func closeLane(ctx context.Context, l *lane.Lane) error { return l.Close(ctx) }

// reader is an ability of some storages.
type reader struct{ storage }

func (*reader) Read([]byte) (int, error) { return 0, io.EOF }

func TestAs_FindsAbilitiesBehindDecorators(t *testing.T) {
	t.Parallel()
	inner := &reader{}
	for name, adapter := range map[string]any{
		"itself": inner, "one": wrappedStorage{inner}, "three": wrappedStorage{wrappedStorage{wrappedStorage{inner}}},
	} {
		if got, ok := lane.As[io.Reader](adapter); !ok || got != io.Reader(inner) {
			t.Errorf("%s: got %v, %t", name, got, ok)
		}
		if got, ok := lane.As[io.Writer](adapter); ok || got != nil {
			t.Errorf("%s: found %v", name, got)
		}
	}
	receiver := &receiving{}
	if got, ok := lane.As[lane.Receiver](wrappedTransport{receiver}); !ok || got != lane.Receiver(receiver) {
		t.Errorf("got %v, %t", got, ok)
	}
	for name, adapter := range map[string]any{
		"nil": nil, "a sealed decorator": sealedTransport{receiver}, "a decorator of nothing": wrappedStorage{}, "something else": 7,
	} {
		if got, ok := lane.As[lane.Receiver](adapter); ok {
			t.Errorf("%s: found %v", name, got)
		}
	}
	// The outermost counts: a decorator may answer itself.
	if got, ok := lane.As[lane.Transport](wrappedTransport{receiver}); !ok || reflect.TypeOf(got) != reflect.TypeFor[wrappedTransport]() {
		t.Errorf("got %T", got)
	}
}

func TestUnimplemented_AnswersCapabilityUnsupported(t *testing.T) {
	t.Parallel()
	quiet := []string{"Capabilities", "Start", "Close", "Queues", "CheckOutput", "CheckPayload", "MaxDelay", "Ordered", "Fair"}
	for contract, adapter := range map[reflect.Type]any{
		reflect.TypeFor[lane.Storage]():   lane.UnimplementedStorage{},
		reflect.TypeFor[lane.Transport](): lane.UnimplementedTransport{},
	} {
		for i := range contract.NumMethod() {
			name := contract.Method(i).Name
			method := reflect.ValueOf(adapter).MethodByName(name)
			arguments := make([]reflect.Value, method.Type().NumIn())
			for j := range arguments {
				arguments[j] = reflect.Zero(method.Type().In(j))
			}
			if name == "Carrier" {
				continue // any queue has its own binding
			}
			results := method.Call(arguments)
			last := results[len(results)-1]
			if slices.Contains(quiet, name) {
				if !last.IsZero() {
					t.Errorf("%s promises or reports %v", name, last)
				}
				continue
			}
			err, _ := last.Interface().(error)
			got, ok := errors.AsType[*runlane.Error](err)
			if !ok || got.Code != runlane.ErrCapabilityUnsupported || got.Retryable || got.Hint == "" {
				t.Errorf("%s: got %v", name, err)
				continue
			}
			if want := "this adapter does not support " + name; got.Message != want {
				t.Errorf("%s says %q", name, got.Message)
			}
			for _, other := range results[:len(results)-1] {
				if !other.IsZero() {
					t.Errorf("%s returns %v with its error", name, other)
				}
			}
		}
		if contract.NumMethod() != reflect.TypeOf(adapter).NumMethod() {
			t.Errorf("%s has %d methods, its stand-in %d", contract, contract.NumMethod(), reflect.TypeOf(adapter).NumMethod())
		}
	}
}
