//go:build !race

package loadtest_test

// raceEnabled: the race detector is on.
const raceEnabled = false
