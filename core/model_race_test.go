//go:build race

package core_test

// raceEnabled: the race detector is on. What goes through very many states is shorter then, and whole without it: scripts/test.sh.
const raceEnabled = true
