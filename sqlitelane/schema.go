package sqlitelane

import "github.com/runlane/runlane-go/sqlitelane/internal/file"

// The file's header has the application and the format. A program refuses a newer format than its own.
const (
	applicationID = 0x524c4e31 // "RLN1"
	format        = 1
)

// schema is format 1 with the additions made since.
var schema = file.Schema{
	Tables: tables,
	Additions: []file.Addition{
		records, ordered, signals, orderedQueues, callsAndEnds, commits, flows, flowsOver, lists, keeping, paces, pausesOfQueues,
	},
}

// tables creates the tables of an empty file.
var tables = []string{
	// Numbers of environments, of queues, and of the queues of environments (ENVIRONMENT:QUEUE) that wakeups are in.
	`CREATE TABLE names(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT`,

	// One row per run. The record has everything that is not needed to find the run (package record); record.Places
	// has the indexed values. queue and ckey (a record.Line) are indexed for runs that want a slot of a queue that was ever limited.
	`CREATE TABLE runs(
		n INTEGER PRIMARY KEY,
		env INTEGER NOT NULL,
		id TEXT NOT NULL,
		kind INTEGER NOT NULL,
		at INTEGER NOT NULL,
		queue INTEGER NOT NULL,
		delivery INTEGER,
		delivery_at INTEGER,
		undelivered_at INTEGER,
		wants_at INTEGER,
		ckey TEXT,
		record BLOB NOT NULL
	) STRICT`,
	`CREATE UNIQUE INDEX runs_id ON runs(env, id)`,
	`CREATE INDEX runs_delivery ON runs(env, delivery, delivery_at, id, queue) WHERE delivery IS NOT NULL`,
	`CREATE INDEX runs_undelivered ON runs(env, undelivered_at, id, queue) WHERE undelivered_at IS NOT NULL`,
	`CREATE INDEX runs_wants ON runs(env, queue, ckey, wants_at, id) WHERE wants_at IS NOT NULL`,

	// Payloads (k = 2n) and outputs (k = 2n + 1) too large for the record.
	`CREATE TABLE bulk(k INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT`,
	// Chunks of long histories: k = n * 2^20 + number of the chunk; first is the sequence of its first event.
	`CREATE TABLE chunks(k INTEGER PRIMARY KEY, first INTEGER NOT NULL, data BLOB NOT NULL) STRICT`,
	// The last progress note of a run.
	`CREATE TABLE notes(
		run INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, at INTEGER NOT NULL, note TEXT NOT NULL
	) STRICT`,

	// Owners of keys: kind 1 idempotency, 2 singleton.
	`CREATE TABLE owners(
		env INTEGER NOT NULL, kind INTEGER NOT NULL, task TEXT NOT NULL, key TEXT NOT NULL, run INTEGER NOT NULL,
		PRIMARY KEY(env, kind, task, key)
	) STRICT, WITHOUT ROWID`,

	// Queues that were ever limited, and the holders of their slots. until is the end of a reservation, NULL for an
	// executing run. Slots are in the order in which they were taken.
	`CREATE TABLE limited(env INTEGER NOT NULL, queue INTEGER NOT NULL, PRIMARY KEY(env, queue)) STRICT, WITHOUT ROWID`,
	`CREATE TABLE slots(
		n INTEGER PRIMARY KEY, env INTEGER NOT NULL, queue INTEGER NOT NULL, ckey TEXT NOT NULL,
		run INTEGER NOT NULL UNIQUE, until INTEGER
	) STRICT`,
	`CREATE INDEX slots_partition ON slots(env, queue, ckey)`,

	`CREATE TABLE schedules(
		env INTEGER NOT NULL, id TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY(env, id)
	) STRICT, WITHOUT ROWID`,
	`CREATE TABLE occurrences(
		env INTEGER NOT NULL, schedule TEXT NOT NULL, fire INTEGER NOT NULL, token TEXT NOT NULL,
		claim_until INTEGER NOT NULL, kept_until INTEGER NOT NULL, result TEXT,
		PRIMARY KEY(env, schedule, fire)
	) STRICT, WITHOUT ROWID`,
	`CREATE TABLE tasks(
		env INTEGER NOT NULL, id TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY(env, id)
	) STRICT, WITHOUT ROWID`,

	// Wakeups. A receiver may take one from visible on. taken is 0, the number of the last take (valid until visible),
	// or 1 if it was handed back. told is the clock's time when visible was written.
	`CREATE TABLE messages(
		n INTEGER PRIMARY KEY, queue INTEGER NOT NULL, visible INTEGER NOT NULL, told INTEGER NOT NULL,
		taken INTEGER NOT NULL, refused INTEGER NOT NULL, wakeup BLOB NOT NULL
	) STRICT`,
	`CREATE INDEX messages_visible ON messages(queue, visible, n, told)`,
}

// records are the steps that runs recorded. created is the run's creation time, because row numbers are reused.
var records = file.Addition{
	Name: "records",
	Statements: []string{
		`CREATE TABLE records(
			run INTEGER NOT NULL, created INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
			attempt INTEGER NOT NULL, started INTEGER NOT NULL, at INTEGER NOT NULL,
			type TEXT NOT NULL, place INTEGER NOT NULL, result BLOB,
			UNIQUE(run, created, name)
		) STRICT`,
	},
}

// ordered adds groups. grp is the concurrency key of a wakeup, its group in an ordered queue. There the first of a group is visible like any
// other; those behind it are parked until it is acknowledged.
var ordered = file.Addition{
	Name: "messages_group",
	Statements: []string{
		`ALTER TABLE messages ADD COLUMN grp TEXT`,
		`CREATE INDEX messages_group ON messages(queue, grp, n) WHERE grp IS NOT NULL`,
	},
}

// signals are the signals sent to runs. For created see records.
var signals = file.Addition{
	Name: "signals",
	Statements: []string{
		`CREATE TABLE signals(
			run INTEGER NOT NULL, created INTEGER NOT NULL, name TEXT NOT NULL, id TEXT NOT NULL,
			number INTEGER NOT NULL, at INTEGER NOT NULL, place INTEGER NOT NULL, body BLOB,
			UNIQUE(run, created, name, id)
		) STRICT`,
	},
}

// callsAndEnds are the calls of runs (for created see records) and the ended runs that owe notifications.
var callsAndEnds = file.Addition{
	Name: "calls",
	Statements: []string{
		`CREATE TABLE calls(
			run INTEGER NOT NULL, created INTEGER NOT NULL, name TEXT NOT NULL, task TEXT NOT NULL,
			count INTEGER NOT NULL, ended INTEGER NOT NULL, sum TEXT NOT NULL, at INTEGER NOT NULL,
			UNIQUE(run, created, name)
		) STRICT`,
		`CREATE TABLE untold(run INTEGER PRIMARY KEY) STRICT`,
	},
}

// flows are the records of flows. A time of 0 is none.
var flows = file.Addition{
	Name: "flows",
	Statements: []string{
		`CREATE TABLE flows(
			env INTEGER NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, created INTEGER NOT NULL,
			round INTEGER NOT NULL, closed INTEGER NOT NULL, tend INTEGER NOT NULL, finished INTEGER NOT NULL,
			status TEXT NOT NULL, plan BLOB,
			PRIMARY KEY(env, id)
		) STRICT, WITHOUT ROWID`,
		`CREATE INDEX flows_tend ON flows(env, tend) WHERE tend > 0`,
	},
}

// flowsOver lists finished flows latest first and open flows by ID. The replaced index had the opposite order, so a
// list of the latest flows had to sort all.
var flowsOver = file.Addition{
	Name: "flows_over",
	Statements: []string{
		`DROP INDEX IF EXISTS flows_finished`,
		`CREATE INDEX flows_over ON flows(env, finished DESC, id)`,
	},
}

// paces are those of partitions of queues with a rate, in microseconds.
var paces = file.Addition{
	Name: "paces",
	Statements: []string{
		`CREATE TABLE paces(
			env INTEGER NOT NULL, queue INTEGER NOT NULL, ckey TEXT NOT NULL,
			next INTEGER NOT NULL, line INTEGER NOT NULL, every INTEGER NOT NULL,
			PRIMARY KEY(env, queue, ckey)
		) STRICT, WITHOUT ROWID`,
	},
}

// lists are the indexes of lists of runs. The runs of a queue and task (a record.Line) form a group, so one index
// serves lists by queue, by task and by both. Rows from older programs are in group 0 until they change.
var lists = file.Addition{
	Name: "runs_list",
	Statements: []string{
		`CREATE TABLE groups(
			id INTEGER PRIMARY KEY, env INTEGER NOT NULL, queue INTEGER NOT NULL, task TEXT NOT NULL,
			UNIQUE(env, queue, task)
		) STRICT`,
		`CREATE INDEX groups_task ON groups(env, task)`,
		`ALTER TABLE runs ADD COLUMN grp INTEGER NOT NULL DEFAULT 0`,
		`ALTER TABLE runs ADD COLUMN rest INTEGER`, // of waiting runs: record.Rest
		`ALTER TABLE runs ADD COLUMN schedule TEXT`,
		`ALTER TABLE runs ADD COLUMN source TEXT`,
		`DROP INDEX IF EXISTS runs_at`,
		`CREATE INDEX runs_list ON runs(env, kind, grp, at, id)`,
		`CREATE INDEX runs_rest ON runs(env, rest, grp, at, id) WHERE rest IS NOT NULL`,
		`CREATE INDEX runs_schedule ON runs(env, schedule, kind, at, id) WHERE schedule IS NOT NULL`,
		`CREATE INDEX runs_source ON runs(env, source, kind, at, id) WHERE source IS NOT NULL`,
	},
}

// orderedQueues are all queues ever named as ordered, for programs that name none.
var orderedQueues = file.Addition{
	Name:       "ordered_queues",
	Statements: []string{`CREATE TABLE ordered_queues(name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID`},
}

// keeping has a record for each environment: where the removal of old runs stands.
var keeping = file.Addition{
	Name:       "keeping",
	Statements: []string{`CREATE TABLE keeping(env INTEGER PRIMARY KEY, record TEXT NOT NULL) STRICT`},
}

// pausesOfQueues are the pauses of an environment's queues and tasks, as JSON.
var pausesOfQueues = file.Addition{
	Name: "pauses",
	Statements: []string{
		`CREATE TABLE pauses(env INTEGER PRIMARY KEY, version INTEGER NOT NULL, entries TEXT NOT NULL) STRICT`,
	},
}
