//go:build race

package loadtest_test

// raceEnabled: the race detector is on. The embedded lane carries a twentieth then.
const raceEnabled = true
