// Package race tells tests whether the race detector is on. What goes through very many states is shorter then, for it
// is five times slower, and whole without it: scripts/test.sh runs both.
package race
