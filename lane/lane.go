package lane

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/runlane/runlane-go"
)

// Lane pairs a Storage with a Transport that wakes its workers. Name is for diagnostics. Build one with [New].
type Lane struct {
	// Bodies is where runtimes keep large bodies. nil: in the storage, which may refuse them.
	Bodies *Bodies
	// Environment of a runtime with no environment in its own options.
	Environment runlane.Environment
	Name        string
	Storage     Storage
	Transport   Transport
	// OperatorReads: operators may read through Storage. Needs a storage with ReadsRunHistory.
	OperatorReads bool
	// ProductionDurable: both halves survive the loss of any process.
	ProductionDurable bool
}

// Options of [New]. nil means none.
type Options struct {
	// Bodies of [Lane]. nil means none.
	Bodies *Bodies
	// Environment for lanes that are configured with one, as awslane is by RUNLANE_ENV.
	Environment runlane.Environment
	// Name defaults to "lane".
	Name string
	// NoOperatorReads hides operator reads. By default they are exposed.
	NoOperatorReads bool
	// ProductionDurable sets [Lane.ProductionDurable]. It needs DurableState and DurableDelivery.
	ProductionDurable bool
}

// Capabilities are the promises of a lane's Storage and Transport.
type Capabilities struct {
	Storage   StorageCapabilities   `json:"storage"`
	Transport TransportCapabilities `json:"transport"`
}

// New validates the pair. A missing or contradictory part is runlane.ErrConfigurationInvalid.
func New(storage Storage, transport Transport, options *Options) (*Lane, error) {
	if options == nil {
		options = &Options{}
	}
	l := &Lane{
		Bodies:            options.Bodies,
		Environment:       options.Environment,
		Name:              options.Name,
		Storage:           storage,
		Transport:         transport,
		OperatorReads:     !options.NoOperatorReads,
		ProductionDurable: options.ProductionDurable,
	}
	if l.Name == "" {
		l.Name = "lane"
	}
	if isNil(storage) {
		return nil, invalid("lane has no storage", "pass a lane.Storage to lane.New")
	}
	if isNil(transport) {
		return nil, invalid("lane has no transport", "pass a lane.Transport to lane.New")
	}
	if err := l.Environment.Validate(); err != nil {
		return nil, &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: "lane has a bad environment name",
			Hint:    "use printable text without ':', or leave it empty",
			Cause:   err,
		}
	}
	if b := l.Bodies; b != nil && (isNil(b.Store) || b.Above < MinBodiesAbove) {
		return nil, invalid("lane has bodies without a store, or keeps small ones apart",
			fmt.Sprintf("set Bodies.Store, and Bodies.Above to at least %d", MinBodiesAbove))
	}
	c := l.Capabilities()
	if l.ProductionDurable && (!c.Storage.DurableState || !c.Transport.DurableDelivery) {
		return nil, invalid("lane is declared production durable but one half is not",
			"clear ProductionDurable, or use a storage of durable state with a transport of durable delivery")
	}
	l.OperatorReads = l.OperatorReads && c.Storage.ReadsRunHistory
	return l, nil
}

// Capabilities returns the capabilities of both halves.
func (l *Lane) Capabilities() Capabilities {
	return Capabilities{Storage: l.Storage.Capabilities(), Transport: l.Transport.Capabilities()}
}

// Start starts storage, then transport. If transport fails, storage is closed again and the error joins both.
func (l *Lane) Start(ctx context.Context, o StartOptions) error {
	if err := l.Storage.Start(ctx); err != nil {
		return err
	}
	if err := l.Transport.Start(ctx, o); err != nil {
		return errors.Join(err, l.Storage.Close(context.WithoutCancel(ctx)))
	}
	return nil
}

// Close closes transport, then storage, even if the first fails. The error joins both.
func (l *Lane) Close(ctx context.Context) error {
	return errors.Join(l.Transport.Close(ctx), l.Storage.Close(ctx))
}

// As finds an optional ability of an adapter, also behind decorators with an Unwrap method that returns the wrapped
// Storage or Transport.
func As[T any](adapter any) (T, bool) {
	for adapter != nil {
		if t, ok := adapter.(T); ok {
			return t, true
		}
		switch wrapper := adapter.(type) {
		case interface{ Unwrap() Storage }:
			adapter = wrapper.Unwrap()
		case interface{ Unwrap() Transport }:
			adapter = wrapper.Unwrap()
		default:
			adapter = nil
		}
	}
	var zero T
	return zero, false
}

func invalid(message, hint string) error {
	return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: message, Hint: hint}
}

// isNil also detects a nil pointer inside a non-nil interface.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
