// Package apart marks a context of a caller that shows runs and needs no large body: core then leaves bodies that the
// lane keeps apart where they are.
package apart

import "context"

type key struct{}

// Context is a context whose reads get size and hash of large bodies, and not the bodies.
type Context struct{ context.Context }

// Value implements context.Context.
func (c *Context) Value(k any) any {
	if k == (key{}) {
		return true
	}
	return c.Context.Value(k)
}

// Leave returns a [Context].
func Leave(ctx context.Context) context.Context { return &Context{ctx} }

// Left reports whether the context is such a one.
func Left(ctx context.Context) bool { return ctx.Value(key{}) != nil }
