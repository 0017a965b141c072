package infra

import "time"

// How AWS invokes the functions. Local AWS and tests read queues and the stream by the same numbers (package
// functions/eventsource).
const (
	// WakeupBatch is the most wakeups in one invocation of the bridge, unless the template's parameter changes it:
	// SQS's own maximum without a batching window, which would delay wakeups.
	WakeupBatch = 10
	// BatchItemFailures is the response type of both mappings: a record that is reported comes again, the others do
	// not.
	BatchItemFailures = "ReportBatchItemFailures"

	// StreamBatch is the most stream records in one invocation of the relay.
	StreamBatch = 100
	// StreamFilter lets only records with a row that is initially pending invoke the relay.
	StreamFilter = `{"eventName":["INSERT"],"dynamodb":{"NewImage":{"relay":{"S":["1"]}}}}`
	// StreamStart begins with everything that the stream still has: LATEST would miss writes while a mapping is
	// created.
	StreamStart = "TRIM_HORIZON"
	// StreamRetries and StreamMaxAge end the repetitions of a batch, which hold up its shard. By then the tick has long
	// published its wakeups.
	StreamRetries = 10
	StreamMaxAge  = time.Hour

	// TickRate is how often the tick is invoked, TickTimeout how long an invocation may take: it is over when the next
	// begins.
	TickRate    = "rate(1 minute)"
	TickTimeout = 55 * time.Second
)
