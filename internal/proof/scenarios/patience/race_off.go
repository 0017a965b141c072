//go:build !race

package patience

// Race reports whether the race detector is on.
const Race = false
