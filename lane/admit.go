package lane

// Admitter is an optional ability of a [Storage], found with [As]. One that a rate of writes can exhaust refuses
// triggers from outside before they starve the runs that exist.
type Admitter interface {
	// AdmitRuns returns runlane.ErrOverloaded with Error.RetryAfter while nobody may trigger further runs; else these are
	// counted. It makes no request. Runs that executing runs, schedules and operators make are not asked for.
	AdmitRuns(n int) error
}
