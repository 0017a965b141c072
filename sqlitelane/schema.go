package sqlitelane

// The head of the file says whose it is and in which form it is kept. A program refuses a form newer than its own.
const (
	applicationID = 0x524c4e31 // "RLN1"
	format        = 1
)

// schema makes an empty file one of format 1.
var schema = []string{
	// Names of environments and queues, which rows name by their numbers.
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
	`CREATE INDEX runs_at ON runs(env, kind, at, id, queue)`,
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

	// Wakeups on their way: visible is from when a receiver may take one, taken whether one did (until visible), and
	// told what the clock said when visible was written.
	`CREATE TABLE messages(
		n INTEGER PRIMARY KEY, queue INTEGER NOT NULL, visible INTEGER NOT NULL, told INTEGER NOT NULL,
		taken INTEGER NOT NULL, refused INTEGER NOT NULL, wakeup BLOB NOT NULL
	) STRICT`,
	`CREATE INDEX messages_visible ON messages(queue, visible, n, told)`,
}
