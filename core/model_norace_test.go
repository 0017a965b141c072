//go:build !race

package core_test

// raceEnabled: the race detector is on.
const raceEnabled = false
