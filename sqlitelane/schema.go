package sqlitelane

import "github.com/runlane/runlane-go/sqlitelane/internal/file"

// The head of the file says whose it is and in which form it is kept. A program refuses a form newer than its own.
const (
	applicationID = 0x524c4e31 // "RLN1"
	format        = 1
)

// schema is that of a file of format 1, with what was added within the format.
var schema = file.Schema{
	Tables:    tables,
	Additions: []file.Addition{records, ordered, signals, orderedQueues, callsAndEnds, commits, flows, flowsOver, lists},
}

// tables makes those of an empty file.
var tables = []string{
	// Names of environments and queues, which rows name by their numbers, and of an environment's queue,
	// ENVIRONMENT:QUEUE, by whose number its wakeups are found.
	`CREATE TABLE names(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT`,

	// One row a run. Everything that is not needed to find it is in its record (package record); the indexes are those
	// of record.Places. queue and ckey are there for runs that want a slot of a queue that ever had a limit.
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

	// Payloads (k = 2n) and outputs (k = 2n + 1) that are too large for the record.
	`CREATE TABLE bulk(k INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT`,
	// Pieces of long histories: k = n * 2^20 + the number of the piece; first is the sequence of its first event.
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

	// Queues that any command ever limited, and who holds their slots: until is the end of a reservation, NULL for a
	// run that executes. Slots are in the order in which they were taken.
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

	// Wakeups on their way: visible is from when a receiver may take one, taken whether one did (until visible): 0, or
	// which take it was, or 1 where it handed the wakeup back. told is what the clock said when visible was written.
	`CREATE TABLE messages(
		n INTEGER PRIMARY KEY, queue INTEGER NOT NULL, visible INTEGER NOT NULL, told INTEGER NOT NULL,
		taken INTEGER NOT NULL, refused INTEGER NOT NULL, wakeup BLOB NOT NULL
	) STRICT`,
	`CREATE INDEX messages_visible ON messages(queue, visible, n, told)`,
}

// records are what runs remember; created is the run's creation, as numbers of rows come again.
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

// ordered is the order of wakeups in groups: grp is the group of one that was published to an ordered queue. The first
// of a group is visible like any other, and those behind it are parked until it is acknowledged.
var ordered = file.Addition{
	Name: "messages_group",
	Statements: []string{
		`ALTER TABLE messages ADD COLUMN grp TEXT`,
		`CREATE INDEX messages_group ON messages(queue, grp, n) WHERE grp IS NOT NULL`,
	},
}

// signals is what was sent to runs; created as in records.
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

// callsAndEnds are the calls of runs, created as in records, and the finished runs whose end is to be told.
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

// flows are the records of flows; a moment of 0 is none.
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

// flowsOver finds flows that have finished, the latest first, and those that have not by id. What it replaces had them
// in the other order, by which a list of the latest had to sort all.
var flowsOver = file.Addition{
	Name: "flows_over",
	Statements: []string{
		`DROP INDEX IF EXISTS flows_finished`,
		`CREATE INDEX flows_over ON flows(env, finished DESC, id)`,
	},
}

// lists are the indexes of lists of runs. The runs of a queue and a task are a group, so that one index has each list
// whole, and with those of a queue or of a task alone. Rows that an older program made are in group 0 until they move.
var lists = file.Addition{
	Name: "runs_list",
	Statements: []string{
		`CREATE TABLE groups(
			id INTEGER PRIMARY KEY, env INTEGER NOT NULL, queue INTEGER NOT NULL, task TEXT NOT NULL,
			UNIQUE(env, queue, task)
		) STRICT`,
		`CREATE INDEX groups_task ON groups(env, task)`,
		`ALTER TABLE runs ADD COLUMN grp INTEGER NOT NULL DEFAULT 0`,
		`ALTER TABLE runs ADD COLUMN rest INTEGER`, // of those that wait for a time or a signal: record.Rest
		`ALTER TABLE runs ADD COLUMN schedule TEXT`,
		`ALTER TABLE runs ADD COLUMN source TEXT`,
		`DROP INDEX IF EXISTS runs_at`,
		`CREATE INDEX runs_list ON runs(env, kind, grp, at, id)`,
		`CREATE INDEX runs_rest ON runs(env, rest, grp, at, id) WHERE rest IS NOT NULL`,
		`CREATE INDEX runs_schedule ON runs(env, schedule, kind, at, id) WHERE schedule IS NOT NULL`,
		`CREATE INDEX runs_source ON runs(env, source, kind, at, id) WHERE source IS NOT NULL`,
	},
}

// orderedQueues are the queues that were ever named as ordered, for programs that do not name them.
var orderedQueues = file.Addition{
	Name:       "ordered_queues",
	Statements: []string{`CREATE TABLE ordered_queues(name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID`},
}
