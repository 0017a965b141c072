package lane

// Finding is what a storage found that examined the place where it keeps its state, for doctor.
type Finding struct {
	// Check names what was looked at, in a few words.
	Check string
	// Detail says what was found.
	Detail string
	// Fix says what to do; "" where that is nothing.
	Fix string
	// Broken says that the state cannot be relied on: the finding is more than a warning.
	Broken bool
}
