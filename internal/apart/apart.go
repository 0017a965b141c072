// Package apart marks a context of a caller that shows runs and needs no large body: core then leaves bodies that the
// lane keeps apart where they are.
package apart

import "context"

type key struct{}

// Leave returns a context whose reads get size and hash of large bodies, and not the bodies.
func Leave(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Left reports whether the context is such a one.
func Left(ctx context.Context) bool { return ctx.Value(key{}) != nil }
