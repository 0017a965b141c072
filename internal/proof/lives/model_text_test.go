package lives

// What a failed life says of its steps.

func (c *modelCall) String() string { return described(c.task, c.payload, &c.options) }

func (x *modelAttempt) String() string {
	switch {
	case !x.waits:
		return x.outcome.String()
	case x.stubborn && x.muted:
		return "waits, stubborn and muted"
	case x.stubborn:
		return "waits, stubborn"
	case x.muted:
		return "waits, muted"
	default:
		return "waits"
	}
}
