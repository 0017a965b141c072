// Package blind marks a context of a caller that may not learn the data of runs. Package server sets it; core's answers
// about IDs that the caller chose then do not depend on stored data.
package blind

import "context"

type key struct{}

// In returns a context of a caller that may not learn payloads, outputs and bodies of signals.
func In(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

func Is(ctx context.Context) bool { return ctx.Value(key{}) != nil }
