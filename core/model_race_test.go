//go:build race

package core_test

// raceEnabled: the race detector is on, as in CI.
const raceEnabled = true
