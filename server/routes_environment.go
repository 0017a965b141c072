package server

import "github.com/runlane/runlane-go/internal/shown"

func environmentOperations() []operation {
	return []operation{
		serve(operation{
			method:  "GET",
			path:    "/v1/tasks",
			scope:   ScopeRead,
			name:    "listTasks",
			group:   "Environment",
			summary: "List the tasks of the environment",
			answers: many[shown.Task]("task"),
		}, listTasks),
		serve(operation{
			method:  "GET",
			path:    "/v1/tasks/{task}",
			scope:   ScopeRead,
			name:    "getTask",
			group:   "Environment",
			summary: "Get a task, with the schema of its payloads",
			text:    "Schemas come from the serving program's file of tasks.",
			answers: ok[shown.Task]("task"),
		}, getTask),
		serve(operation{
			method:  "POST",
			path:    "/v1/tasks/{task}/pause",
			scope:   ScopeOperate,
			name:    "pauseTask",
			group:   "Environment",
			summary: "Keep runs of a task from starting, in all queues",
			answers: ok[shown.Pause]("pause"),
		}, pauseTask),
		serve(operation{
			method:  "POST",
			path:    "/v1/tasks/{task}/resume",
			scope:   ScopeOperate,
			name:    "resumeTask",
			group:   "Environment",
			summary: "Let runs of a paused task start again",
			answers: ok[shown.Pause]("pause"),
		}, resumeTask),
		serve(operation{
			method:  "GET",
			path:    "/v1/queues",
			scope:   ScopeRead,
			name:    "listQueues",
			group:   "Environment",
			summary: "List the queues that are known here, and those that can be reached",
			answers: many[shown.Queue]("queue"),
		}, listQueues),
		serve(operation{
			method:  "GET",
			path:    "/v1/queues/{queue}",
			scope:   ScopeRead,
			name:    "queueStats",
			group:   "Environment",
			summary: "Count what waits and what runs in a queue",
			answers: ok[shown.Stats]("queue.stats"),
		}, queueStats),
		serve(operation{
			method:  "POST",
			path:    "/v1/queues/{queue}/pause",
			scope:   ScopeOperate,
			name:    "pauseQueue",
			group:   "Environment",
			summary: "Keep runs of a queue from starting",
			text:    "Runs are still made, and attempts in progress go on.",
			answers: ok[shown.Pause]("pause"),
		}, pauseQueue),
		serve(operation{
			method:  "POST",
			path:    "/v1/queues/{queue}/resume",
			scope:   ScopeOperate,
			name:    "resumeQueue",
			group:   "Environment",
			summary: "Let runs of a paused queue start again",
			answers: ok[shown.Pause]("pause"),
		}, resumeQueue),
		serve(operation{
			method:  "POST",
			path:    "/v1/doctor",
			scope:   ScopeOperate,
			name:    "doctor",
			group:   "Environment",
			summary: "Check whether everything works, and how to fix it",
			text: "Checks the lane, access, queues, work that no worker takes, dead letters, and the storage's " +
				"invariants on a sample. It tests access by reads that find nothing and writes that cannot succeed. " +
				"On DynamoDB it costs about as much as a page of runs and one of each queue.",
			answers: many[shown.Finding]("finding"),
		}, diagnose),
		serve(operation{
			method:  "POST",
			path:    "/v1/tick",
			scope:   ScopeOperate,
			name:    "tick",
			group:   "Environment",
			summary: "Do one round of maintenance",
			text:    "Deployments tick by themselves; two ticks at once are harmless.",
			answers: ok[shown.Tick]("tick"),
		}, tick),
	}
}
