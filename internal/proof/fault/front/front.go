// Package front stands before an emulator of DynamoDB and answers as DynamoDB does where emulators are kinder:
//
//   - A transaction holds its items from its arrival until a few milliseconds after it was carried out. Another
//     transaction that names one of them is cancelled with TransactionConflict in the positions of those items, and a
//     plain write of one is refused with TransactionConflictException. The same request, sent again meanwhile, gets
//     TransactionInProgressException.
//   - Indexes, and reads that do not ask for strong consistency, show each item as it was 300 to 3,000 ms ago: new
//     entries come late, and old ones stay. Both indexes of a table are late alike.
//   - Answers get lost: the request was carried out, and the connection is closed or the answer is an internal error.
//
// A prompt front leaves the first two out, and refuses a part of the requests as if there were a conflict or too many of
// them; the emulator behind it may end and come again elsewhere.
//
// It is an endpoint: any client of DynamoDB works behind it, with AWS_ENDPOINT_URL_DYNAMODB or through [Front.URL]. It
// sees only what passes through it: writes from elsewhere never appear in its late reads. A table is known from its
// first request, with what is in it by then.
//
// How late an item is and which answers get lost are decided by the seed, the item or the request, and the number of
// the write or the sending: not by the clock, nor by what other requests do.
//
// The late state of a table is kept by an emulator too, in a table of the same name under another access key: queries
// of an index are sent there as they are. The emulator must therefore keep access keys apart and check no signatures,
// as DynamoDB Local and LocalStack do.
package front

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Options of [Start]. The zero value is what AWS does, with one in fifty answers lost.
type Options struct {
	// Seed makes a front repeatable; 0 chooses one.
	Seed uint64
	// Late bounds how late indexes and eventual reads are. Defaults to 300 to 3,000 ms.
	Late Span
	// Commit bounds how long a transaction holds its items after it was carried out. Defaults to 5 to 15 ms.
	Commit Span
	// Lost is the part of the answers that get lost. 0 means one in fifty, and less than 0 none.
	Lost float64
	// Replica is the endpoint of the emulator that keeps the late state. Defaults to the one behind the front.
	Replica string
	// Prompt is a front that holds nothing and shows nothing late. It refuses the part Refused of the requests: writes half by
	// a conflict and half by a throttle, reads by a throttle.
	Prompt  bool
	Refused float64
	// Where is the emulator now, "" where there is none: connections break then. They break too where it is deaf: requests are
	// carried out, and no caller hears of it. nil is where [Start] says.
	Where func() (url string, deaf bool)
}

// Span is from one duration to another.
type Span struct{ Least, Most time.Duration }

// pick is the duration within the span that a random number names.
func (s Span) pick(n uint64) time.Duration {
	if s.Most <= s.Least {
		return s.Least
	}
	return s.Least + time.Duration(n%uint64(s.Most-s.Least)) // both are positive
}

// inSuccession is how many faults by chance one request meets at most, however often it is sent: less than the SDK
// tries.
const inSuccession = 2

// Stats counts what happened.
type Stats struct {
	Requests   int64 // of data
	Conflicts  int64 // transactions that met another
	Refused    int64 // plain writes that met a transaction
	Throttled  int64 // requests, of a prompt front
	InProgress int64 // transactions that met their own earlier sending
	Late       int64 // reads while something they could show was late
	Lost       int64 // answers
}

func (s Stats) String() string {
	return fmt.Sprintf(
		"%d requests: %d transactions met another, %d met their own earlier sending, %d plain writes met a "+
			"transaction, %d were throttled, %d reads were late, %d answers were lost",
		s.Requests,
		s.Conflicts,
		s.InProgress,
		s.Refused,
		s.Throttled,
		s.Late,
		s.Lost,
	)
}

// Front is a server on the loopback interface. Safe for concurrent use.
type Front struct {
	options  Options
	backend  string
	listener net.Listener
	server   *http.Server
	client   *http.Client
	ended    chan struct{}
	holds    holds
	replicas replicas

	requests, conflicts, refused, throttled, inProgress, late, lost atomic.Int64

	calm atomic.Bool // no request is refused, and no answer lost

	mu       sync.Mutex
	asked    int            // requests of a prompt front
	met      map[string]int // by sending of a client: refusals and lost answers in succession
	sendings map[string]int // by request that lost one: how often it was sent
}

// Start starts a front before the emulator at an endpoint.
func Start(backend string, options *Options) (*Front, error) {
	f := &Front{backend: backend, ended: make(chan struct{}), met: map[string]int{}, sendings: map[string]int{}}
	if options != nil {
		f.options = *options
	}
	o := &f.options
	for o.Seed == 0 {
		o.Seed = rand.Uint64() // a choice of faults
	}
	o.Late = cmp.Or(o.Late, Span{300 * time.Millisecond, 3 * time.Second})
	o.Commit = cmp.Or(o.Commit, Span{5 * time.Millisecond, 15 * time.Millisecond})
	o.Lost = cmp.Or(o.Lost, 0.02)
	o.Replica = cmp.Or(o.Replica, backend)
	f.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}}
	f.holds.items, f.holds.tokens = map[itemKey]*hold{}, map[string]bool{}
	f.replicas.front, f.replicas.tables = f, map[tableKey]*replica{}
	var err error
	if f.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("front: %w", err)
	}
	f.server = &http.Server{Handler: http.HandlerFunc(f.serve), ReadHeaderTimeout: time.Minute}
	go func() { _ = f.server.Serve(f.listener) }() // until Close
	return f, nil
}

// URL is the front's endpoint.
func (f *Front) URL() string { return "http://" + f.listener.Addr().String() }

// Seed is what the front's decisions come from.
func (f *Front) Seed() uint64 { return f.options.Seed }

// Stats are the counts so far.
func (f *Front) Stats() Stats {
	return Stats{
		Requests:   f.requests.Load(),
		Conflicts:  f.conflicts.Load(),
		Refused:    f.refused.Load(),
		Throttled:  f.throttled.Load(),
		InProgress: f.inProgress.Load(),
		Late:       f.late.Load(),
		Lost:       f.lost.Load(),
	}
}

// Switch turns off, or on again, what is decided by chance.
func (f *Front) Switch(on bool) { f.calm.Store(!on) }

// Close ends the front and removes the late state that it kept. It does not wait for requests that are under way.
func (f *Front) Close() error {
	close(f.ended)
	err := f.server.Close()
	f.replicas.close()
	f.client.CloseIdleConnections()
	return err
}

// serve answers one request.
func (f *Front) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller is gone
	}
	// What was asked for is done even if the caller gives up meanwhile, as in a service.
	q := &request{
		ctx:       context.WithoutCancel(r.Context()),
		header:    r.Header,
		operation: operationOf(r.Header),
		body:      body,
	}
	handle, data := f.handlers()[q.operation]
	switch {
	case !data:
		handle = f.pass
	case f.options.Prompt:
		handle = f.prompt
	}
	if data {
		f.requests.Add(1)
		if err := q.parse(); err != nil {
			refusal("SerializationException", err.Error()).write(w)
			return
		}
	}
	a := handle(q)
	if data {
		f.release(w, q, a)
		return
	}
	a.write(w)
}

// release lets an answer through, or not.
func (f *Front) release(w http.ResponseWriter, q *request, a *answer) {
	n, lost := f.loses(q)
	switch {
	case !lost:
		a.write(w)
	case n%3 == 0:
		failure(
			"InternalServerError",
			"The request processing has failed because of an unknown error, exception or failure.",
		).write(w)
	default:
		(&answer{}).write(w)
	}
}

// loses decides whether the answer to a request gets lost, and how.
func (f *Front) loses(q *request) (how uint64, lost bool) {
	if q.refused {
		return 0, false
	}
	id, sending := q.identity(), q.sending()
	f.mu.Lock()
	defer f.mu.Unlock()
	source := f.source("answer", id, f.sendings[id])
	if f.calm.Load() || source.Float64() >= f.options.Lost || f.met[sending] == inSuccession {
		delete(f.met, sending)
		return 0, false
	}
	f.met[sending]++
	f.sendings[id]++
	f.lost.Add(1)
	return source.Uint64(), true
}

// refuses decides whether a request is refused; source decides how.
func (f *Front) refuses(q *request) (source *rand.Rand, refused bool) {
	sending := q.sending()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	source = f.source("refuse", q.operation, f.asked)
	if f.calm.Load() || source.Float64() >= f.options.Refused || f.met[sending] == inSuccession {
		return nil, false
	}
	f.met[sending]++
	q.refused = true
	return source, true
}

// prompt refuses a request, or sends it on.
func (f *Front) prompt(q *request) *answer {
	source, refused := f.refuses(q)
	if !refused {
		return f.pass(q)
	}
	if _, writes := writeKinds[q.operation]; writes && source.IntN(2) == 0 {
		f.conflicts.Add(1)
		return refusal("TransactionConflictException", ongoing)
	}
	if members := q.fields.objects("TransactItems"); q.operation == "TransactWriteItems" && len(members) > 0 && source.IntN(2) == 0 {
		f.conflicts.Add(1)
		met := make([]bool, len(members))
		met[source.IntN(len(met))] = true
		return cancelled(met)
	}
	f.throttled.Add(1)
	kind := "ProvisionedThroughputExceededException"
	if source.IntN(2) == 0 {
		kind = "ThrottlingException"
	}
	return refusal(kind, "too many requests")
}

// pass sends a request on as it is.
func (f *Front) pass(q *request) *answer {
	if q.operation == "DeleteTable" {
		f.replicas.forget(q)
	}
	if f.options.Where == nil {
		return f.send(q.ctx, f.backend, q.header, q.body)
	}
	url, _ := f.options.Where()
	if url == "" {
		return &answer{}
	}
	a := f.send(q.ctx, url, q.header, q.body)
	if _, deaf := f.options.Where(); deaf || a.status == http.StatusBadGateway {
		return &answer{}
	}
	return a
}

// send asks an emulator. A failure to reach it is an answer too.
func (f *Front) send(ctx context.Context, endpoint string, header http.Header, body []byte) *answer {
	out, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return failure("InternalServerError", err.Error())
	}
	out.Header = header.Clone()
	out.Header.Del("Accept-Encoding")
	response, err := f.client.Do(out)
	if err != nil {
		return unreachable(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return unreachable(err)
	}
	return &answer{status: response.StatusCode, header: response.Header, body: text}
}

// unreachable is the answer where there is no emulator.
func unreachable(err error) *answer {
	a := failure("InternalServerError", "front: "+err.Error())
	a.status = http.StatusBadGateway
	return a
}
