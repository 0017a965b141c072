//go:build race

package patience

// Race reports whether the race detector is on. What goes through very many states is shorter then, for it is five times slower.
const Race = true
