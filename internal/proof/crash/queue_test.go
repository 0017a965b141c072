package crash_test

import (
	"crypto/md5" // the sum that SQS answers with
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

// queues is an SQS that outlives the processes that use it, with a separate clock for each queue: standard queues, as many as are
// asked for by name.
type queues struct {
	server *httptest.Server

	mu     sync.Mutex
	byName map[string]*queue
	next   int
}

type queue struct {
	url     string
	ahead   time.Duration // of the clock
	refuses string        // the code that messages are refused with
	until   time.Time     // by the queue's clock
	held    []*message
}

// message is one that was not deleted.
type message struct {
	id       string
	receipt  string
	body     string
	receives int
	visible  time.Time // not before, by the queue's clock
}

const visibility = time.Minute

func newQueues() *queues {
	q := &queues{byName: map[string]*queue{}}
	q.server = httptest.NewServer(http.HandlerFunc(q.serve))
	return q
}

func (q *queues) url(name string) string { return q.server.URL + "/000000000000/" + name }

// with calls a function under the lock, with a queue and its time.
func (q *queues) with(name string, do func(queue *queue, now time.Time)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.byName[name]
	if of == nil {
		of = &queue{url: q.url(name)}
		q.byName[name] = of
	}
	do(of, time.Now().Add(of.ahead))
}

func (q *queues) send(of *queue, body string, visible time.Time) *message {
	q.next++
	m := &message{id: "message-" + strconv.Itoa(q.next), body: body, visible: visible}
	of.held = append(of.held, m)
	return m
}

// receive takes visible messages, at most n.
func (q *queues) receive(of *queue, now time.Time, n int) []message {
	var taken []message
	for _, m := range of.held {
		if len(taken) == n {
			break
		}
		if m.visible.After(now) {
			continue
		}
		q.next++
		m.receipt, m.visible = "receipt-"+strconv.Itoa(q.next), now.Add(visibility)
		m.receives++
		taken = append(taken, *m)
	}
	return taken
}

// find returns the message with a receipt, and where it is; nil when it is gone.
func (of *queue) find(receipt string) (at int, m *message) {
	for i, m := range of.held {
		if m.receipt == receipt {
			return i, m
		}
	}
	return 0, nil
}

func (of *queue) delete(receipt string) {
	if at, m := of.find(receipt); m != nil {
		of.held = append(of.held[:at], of.held[at+1:]...)
	}
}

// request is what the requests have, all of them together.
type request struct {
	QueueUrl            string
	MaxNumberOfMessages int
	Entries             []struct {
		ID                string `json:"Id"`
		MessageBody       string
		ReceiptHandle     string
		DelaySeconds      int
		VisibilityTimeout int
	}
}

func (q *queues) serve(w http.ResponseWriter, r *http.Request) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var in request
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var answer map[string]any
	q.with(in.QueueUrl[strings.LastIndexByte(in.QueueUrl, '/')+1:], func(of *queue, now time.Time) {
		answer = q.answer(operation, &in, of, now)
	})
	if answer == nil {
		http.Error(w, "unknown operation "+operation, http.StatusBadRequest)
		return
	}
	text, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_, _ = w.Write(text) // no client is left to tell
}

func (q *queues) answer(operation string, in *request, of *queue, now time.Time) map[string]any {
	type entry = map[string]any
	done, failed := []entry{}, []entry{}
	switch operation {
	case "GetQueueAttributes":
		return entry{"Attributes": entry{
			"QueueArn":                    "arn:aws:sqs:us-east-1:" + strings.ReplaceAll(of.url[strings.Index(of.url, "000000000000"):], "/", ":"),
			"ApproximateNumberOfMessages": strconv.Itoa(len(of.held)), "ApproximateNumberOfMessagesNotVisible": "0",
		}}
	case "ReceiveMessage":
		for _, m := range q.receive(of, now, in.MaxNumberOfMessages) {
			done = append(done, entry{
				"MessageId": m.id, "ReceiptHandle": m.receipt, "Body": m.body, "MD5OfBody": sum(m.body),
				"Attributes": entry{"ApproximateReceiveCount": strconv.Itoa(m.receives)},
			})
		}
		return entry{"Messages": done}
	case "SendMessageBatch":
		for _, e := range in.Entries {
			if now.Before(of.until) {
				failed = append(failed, entry{"Id": e.ID, "Code": of.refuses, "Message": "as told", "SenderFault": true})
				continue
			}
			m := q.send(of, e.MessageBody, now.Add(time.Duration(e.DelaySeconds)*time.Second))
			done = append(done, entry{"Id": e.ID, "MessageId": m.id, "MD5OfMessageBody": sum(e.MessageBody)})
		}
	case "DeleteMessageBatch":
		for _, e := range in.Entries {
			of.delete(e.ReceiptHandle)
			done = append(done, entry{"Id": e.ID})
		}
	case "ChangeMessageVisibilityBatch":
		for _, e := range in.Entries {
			if _, m := of.find(e.ReceiptHandle); m != nil {
				m.visible = now.Add(time.Duration(e.VisibilityTimeout) * time.Second)
			}
			done = append(done, entry{"Id": e.ID})
		}
	default:
		return nil
	}
	return entry{"Successful": done, "Failed": failed}
}

func sum(text string) string {
	s := md5.Sum([]byte(text)) // as above
	return hex.EncodeToString(s[:])
}
