package lane

// Admitter is an optional ability of a [Storage], found with [As]. One that a rate of writes can exhaust refuses
// triggers from outside before they starve the runs that exist.
type Admitter interface {
	// AdmitTrigger returns runlane.ErrOverloaded with Error.RetryAfter while no further trigger may write. It makes no
	// request. Runs that executing runs, schedules, flows and operators make are created without asking.
	AdmitTrigger() error
}
