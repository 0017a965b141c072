// Package costs is the one place for what AWS charges, and for arithmetic over it. Its tests measure what runs use and
// hold docs/prices.md to that; those of others hold their documents to these prices.
package costs

// List prices on demand, standard class, us-east-1, in dollars for a million, as of November 2026.
const (
	WriteUnit        = 0.625
	ReadUnit         = 0.125
	SQSRequest       = 0.40
	SQSFIFORequest   = 0.50
	LambdaInvocation = 0.20
	// LambdaGigabyteSecond is that of the first tier, on arm64.
	LambdaGigabyteSecond = 13.3334
	SchedulerCall        = 1.00
)

// List prices in dollars a month: of a metric that an alarm looks at, of one that is sent, of a dashboard, and of a GB
// in the table and in its point-in-time recovery.
const (
	AlarmMetric      = 0.10
	CustomMetric     = 0.30
	Dashboard        = 3.00
	StoredGigabyte   = 0.25
	RecoveryGigabyte = 0.20
)

// TicksAMonth are those of an hour's 60, in 730 hours.
const TicksAMonth = 43_800

// What the alternatives charge, in dollars for a million.
const (
	// StepFunctionsTransition is that of a Standard workflow.
	StepFunctionsTransition = 25.00
	// DurableOperation is that of a Lambda durable function; DurableGigabyte is dollars for a GB written, not for a
	// million.
	DurableOperation = 8.00
	DurableGigabyte  = 0.25
	// TemporalAction is that of Temporal Cloud, of the first five million in a month.
	TemporalAction = 50.00
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
	return u.Units() + (u.Sends+2*u.Deliveries/batch)*SQSRequest + u.Deliveries/batch*LambdaInvocation
}

// Units are the dollars for a million that DynamoDB charges.
func (u Use) Units() float64 { return u.Writes*WriteUnit + u.Reads*ReadUnit }
