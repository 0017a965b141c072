package mcp

import (
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
)

// tool is an operation of the API under a name for models.
type tool struct {
	name      string
	operation string // operationId in openapi.json
	text      string // added to the operation's description
	writes    bool   // needs Options.Allow
	ends      bool   // may end or undo something
	repeats   bool   // idempotent with the same arguments
}

// tools lists all tools. The operations define their inputs and results.
var tools = []tool{
	{name: "find", operation: "listRuns"},
	{name: "get", operation: "getRun"},
	{name: "explain", operation: "explainRun", text: "Begin here where the question is why a run has not happened."},
	{name: "history", operation: "listEvents"},
	{name: "attempts", operation: "listAttempts"},
	{name: "steps", operation: "listSteps"},
	{name: "logs", operation: "listLogs"},
	{name: "receipts", operation: "listReceipts"},
	{name: "tree", operation: "getTree"},
	{name: "flows", operation: "listFlows"},
	{name: "flow", operation: "getFlow"},
	{name: "deadletters", operation: "listDeadLetters"},
	{name: "tasks", operation: "listTasks"},
	{name: "queues", operation: "listQueues"},
	{name: "queue", operation: "queueStats"},
	{name: "schedules", operation: "listSchedules"},
	{name: "schedule", operation: "getSchedule"},
	{name: "occurrences", operation: "listOccurrences"},
	{
		name:      "trigger",
		operation: "triggerRun",
		text:      "Give idempotencyKey or runId, then the call can be repeated.",
		writes:    true,
	},
	{name: "cancel", operation: "cancelRun", writes: true, ends: true, repeats: true},
	{name: "resume", operation: "resumeRun", writes: true},
	{name: "retry", operation: "retryRun", writes: true, repeats: true},
	{name: "rerun", operation: "rerunRun", writes: true, repeats: true},
	{name: "requeue", operation: "requeueRun", writes: true},
	{name: "signal", operation: "signalRun", writes: true},
	{name: "cancel_flow", operation: "cancelFlow", writes: true, ends: true},
	{name: "retry_flow", operation: "retryFlow", text: "Give number, then the call can be repeated.", writes: true},
	{name: "answer", operation: "answerRun", writes: true, repeats: true},
}

// Writing returns the names of tools that change something, for Options.Allow.
func Writing() []string {
	var names []string
	for i := range tools {
		if tools[i].writes {
			names = append(names, tools[i].name)
		}
	}
	return names
}

// allowed refuses unknown tools, and tools that need no permission.
func allowed(names []string) error {
	for _, name := range names {
		if !slices.Contains(Writing(), name) {
			return &runlane.Error{
				Code:    runlane.ErrConfigurationInvalid,
				Message: "there is no tool " + clip(name) + " to allow",
				Hint:    "tools that change something are " + strings.Join(Writing(), ", "),
			}
		}
	}
	return nil
}

func clip(text string) string {
	const most = 100
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return `"` + text + `"`
}
