// Package costs holds what AWS charges, and arithmetic over it. Its tests measure what runs use and hold docs/costs.md
// to that.
package costs

// List prices on demand, standard class, us-east-1, in dollars for a million, as of November 2026.
const (
	WriteUnit        = 0.625
	ReadUnit         = 0.125
	SQSRequest       = 0.40
	LambdaInvocation = 0.20
)

// What the alternatives charge, in dollars for a million.
const (
	// StepFunctionsTransition is that of a Standard workflow.
	StepFunctionsTransition = 25.00
	// DurableOperation is that of a Lambda durable function; DurableGigabyte is dollars for a GB written, not for a
	// million.
	DurableOperation = 8.00
	DurableGigabyte  = 0.25
)

// Use is what something uses, on average.
type Use struct {
	Writes, Reads     float64 // DynamoDB's units
	Requests          float64 // to DynamoDB
	Sends, Deliveries float64 // requests that send to SQS; messages that come from it
}

// BatchSize is how many messages a receive, a delete and an invocation share at best.
const BatchSize = 10

// Dollars are those for a million: everything but the time of handlers. batch is how many messages a receive, a delete
// and an invocation share.
func (u Use) Dollars(batch float64) float64 {
	return u.Writes*WriteUnit + u.Reads*ReadUnit + (u.Sends+2*u.Deliveries/batch)*SQSRequest +
		u.Deliveries/batch*LambdaInvocation
}
