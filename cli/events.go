package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
)

// Texts of events: a new type needs its word and detail here.

// eventText is one event for a stream. On a narrow terminal the detail goes to further lines.
func (s *session) eventText(stream any, record *runlane.EventRecord) string {
	head := fmt.Sprintf(
		"%3d  %s  %-26s",
		record.Sequence,
		record.OccurredAt.UTC().Format("2006-01-02 15:04:05.000Z"),
		record.Type(),
	)
	detail := eventDetail(record)
	text := strings.TrimRight(head+"  "+detail, " ")
	if columns, ok := s.width(stream); ok && utf8.RuneCountInString(text) > columns {
		return strings.TrimRight(head, " ") + "\n" + wrapped(detail, strings.Repeat(" ", 5), columns)
	}
	return text
}

func eventDetail(record *runlane.EventRecord) string {
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, text)
		}
	}
	switch body := record.Body.(type) {
	case *runlane.RunCreated:
		add(string(body.TaskID) + ", " + sourceText(body.Source))
	case *runlane.RunDeliveryRequested:
		if body.Delivery.AvailableAt.After(record.OccurredAt) {
			add("for " + instant(body.Delivery.AvailableAt))
		}
		if !body.Delivery.DispatchExpiresAt.IsZero() {
			add("slot until " + instant(body.Delivery.DispatchExpiresAt))
		}
	case *runlane.RunDebounced:
		add("for " + instant(body.RunAt))
	case *runlane.RunLeaseClaimed:
		add(body.Lease.WorkerID + ", until " + instant(body.Lease.ExpiresAt))
	case *runlane.RunLeaseHeartbeat:
		add("until " + instant(body.Lease.ExpiresAt))
	case *runlane.RunStarted:
		add(fmt.Sprintf("attempt %d", body.Attempt))
	case *runlane.RunSucceeded:
		add(fmt.Sprintf("attempt %d", body.Attempt))
	case *runlane.RunFailed:
		add(fmt.Sprintf("attempt %d: %s", body.Attempt, failureText(body.Failure)))
	case *runlane.RunRetryScheduled:
		add(fmt.Sprintf("attempt %d: %s, again at %s", body.Attempt, failureText(body.Failure), instant(body.RetryAt)))
	case *runlane.RunReleased:
		add(releasedText(body))
	case *runlane.RunResumed:
		add(strings.TrimRight(strings.TrimSpace(string(body.By)+" "+body.Name)+" "+body.ID, " "))
		add(body.Reason)
	case *runlane.RunCancellationRequested:
		add(body.Reason)
	case *runlane.RunCancelled:
		add(body.Reason)
	case *runlane.UnknownEvent:
		add("of a newer version")
	}
	if record.Actor.Type == runlane.ActorOperator {
		add(strings.TrimRight("by operator "+record.Actor.ID, " "))
	}
	add(pairsText(record.Meta))
	return strings.Join(parts, ", ")
}

func releasedText(body *runlane.RunReleased) string {
	text := fmt.Sprintf("attempt %d: %s", body.Attempt, body.Reason)
	if at := knownDue(body.ResumeAt); !at.IsZero() {
		text += ", again at " + instant(at)
	}
	return text
}

// transition names the state change of an event; "" for events that only programs need.
func transition(record *runlane.EventRecord) (word, color string) {
	switch record.Body.(type) {
	case *runlane.RunCreated:
		return "created", ""
	case *runlane.RunDebounced:
		return "debounced", ""
	case *runlane.RunStarted:
		return "started", ""
	case *runlane.RunSucceeded:
		return "succeeded", green
	case *runlane.RunFailed:
		return "failed", red
	case *runlane.RunRetryScheduled:
		return "retrying", yellow
	case *runlane.RunReleased:
		return "released", yellow
	case *runlane.RunResumed:
		return "resumed", ""
	case *runlane.RunCancellationRequested:
		return string(runlane.StatusCancellationRequested), yellow
	case *runlane.RunCancelled:
		return "cancelled", yellow
	default: // deliveries, claims and heartbeats are in "runs events"
		return "", ""
	}
}
