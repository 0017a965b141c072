package lane

// Finding is a result of a storage's self-check, for doctor.
type Finding struct {
	// Check names the check in a few words.
	Check string
	// Detail describes the finding.
	Detail string
	// Fix is the next step; "" for none.
	Fix string
	// Broken: the state cannot be relied on; the finding is more than a warning.
	Broken bool
}
