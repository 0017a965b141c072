package file

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// mostInBatch bounds the commands of a commit, and thereby how long others wait for the lock.
	mostInBatch = 256
	// mostYields is how often a batch yields to other goroutines before it starts.
	mostYields = 2
	// laterBy is how long a command without a waiting caller may wait for others.
	laterBy = 10 * time.Millisecond
	// lockPatience is how long a commit waits for another process's lock.
	lockPatience = 10 * time.Second
	// wary is how long to make room for another process after it wrote: each commit leaves the lock free for giveWay.
	// A process that polls the lock would otherwise find it free only for instants.
	wary    = 100 * time.Millisecond
	giveWay = 300 * time.Microsecond
)

// job is a command that waits for its batch.
type job struct {
	run   func(*Tx) error
	taken atomic.Bool // into a batch, or by a caller that gave up
	done  chan error  // nil if no caller waits
}

// writer is the only writer of the file in its process. Whoever has the turn writes. A caller that gets the turn
// executes its own and all waiting commands, so a lone caller needs no other goroutine.
type writer struct {
	path  string
	place place
	claim *claim
	conn  *Conn
	jobs  sync.Pool     // per file: channels of a test in a synctest bubble must not leave it
	turn  chan struct{} // has room for one; whoever filled it has the turn. Close keeps it.
	ended chan struct{} // closed with the last turn

	// dropCache drops the cache of the file: after a rollback, and under the lock at the start of a batch if another
	// process has written.
	dropCache func()
	version   int64     // of the data after the last commit; -1: unknown
	others    time.Time // when another process was last seen writing
	batch     []*job    // under way, not answered
	log       logSize
	crowd     int // callers answered by the last batch

	mu      sync.Mutex
	waiting []*job
	later   []func(*Tx) error
	timer   *time.Timer
	closed  bool
}

func newWriter(p place, c *Conn) *writer {
	w := &writer{
		path: p.path, place: p, conn: c, turn: make(chan struct{}, 1), ended: make(chan struct{}),
		dropCache: func() {}, version: -1,
	}
	w.jobs.New = func() any { return &job{done: make(chan error, 1)} }
	return w
}

// Remember sets the function that drops the cache of the file. It is called under the writer's lock.
func (f *File) Remember(forget func()) {
	if !f.readOnly {
		f.writer.dropCache = forget
	}
}

// Write executes a command in a transaction that it may share, and returns when it is durable. run may be called
// several times, in any caller's goroutine; the last call counts. If run fails, its error is returned and nothing is
// written.
func (f *File) Write(ctx context.Context, run func(*Tx) error) error {
	if err := f.ReadOnly(); err != nil {
		return err
	}
	if f.effect != nil {
		run = traced(run, f.effect())
	}
	w := f.writer
	j := w.jobs.Get().(*job)
	j.run = run
	j.taken.Store(false)
	if !w.enqueue(j) {
		return closed(f.path)
	}
	for {
		select {
		case err := <-j.done:
			j.run = nil
			w.jobs.Put(j)
			return err
		case w.turn <- struct{}{}:
			w.runBatch(j)
		case <-ctx.Done():
			if j.taken.CompareAndSwap(false, true) { // the writer skips it
				return cancelled(ctx)
			}
			return <-j.done // it is in a batch, which ends in a moment
		}
	}
}

// enqueue adds a command. It returns false if the file is closed.
func (w *writer) enqueue(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.waiting = append(w.waiting, j)
	}
	return !w.closed
}

// Later executes a command soon, at the latest with the next batch. Its error is dropped, and a crash may lose it.
func (f *File) Later(run func(*Tx) error) {
	if f.readOnly {
		return
	}
	if f.effect != nil {
		run = traced(run, f.effect())
	}
	w := f.writer
	w.mu.Lock()
	defer w.mu.Unlock()
	w.later = append(w.later, run)
	if w.timer == nil {
		w.timer = time.AfterFunc(laterBy, w.nudge)
	} else if len(w.later) == 1 {
		w.timer.Reset(laterBy)
	}
}

// traced calls durable when the command is.
func traced(run func(*Tx) error, durable func()) func(*Tx) error {
	return func(tx *Tx) error {
		tx.After(func(committed bool) {
			if committed {
				durable()
			}
		})
		return run(tx)
	}
}

// nudge executes the commands of Later.
func (w *writer) nudge() {
	select {
	case w.turn <- struct{}{}:
		w.runBatch(nil)
	case <-w.ended:
	}
}

// take returns up to room waiting commands, and all of Later.
func (w *writer) take(todo []*job, room int) []*job {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, run := range w.later {
		todo = append(todo, &job{run: run})
	}
	clear(w.later)
	w.later = w.later[:0]
	n := 0
	for ; n < len(w.waiting) && len(todo) < room; n++ {
		if j := w.waiting[n]; j.taken.CompareAndSwap(false, true) {
			todo = append(todo, j)
		}
	}
	left := copy(w.waiting, w.waiting[n:])
	clear(w.waiting[left:])
	w.waiting = w.waiting[:left]
	return todo
}

// runBatch executes a batch: the waiting commands and those that arrive meanwhile. The caller has the turn; runBatch
// gives it back. own is the caller's command, which another batch may have executed, or nil.
func (w *writer) runBatch(own *job) {
	defer func() {
		w.abandon()
		<-w.turn
	}()
	if own != nil && own.taken.Load() {
		return
	}
	if !time.Now().After(w.others.Add(wary)) {
		time.Sleep(giveWay)
	}
	w.awaitCrowd()
	w.settle(w.take(nil, mostInBatch))
}

// awaitCrowd yields to the callers of the last batch, which often come back: a commit costs the same for one and for
// many. A lone caller does not wait.
func (w *writer) awaitCrowd() {
	for range mostYields {
		w.mu.Lock()
		here := len(w.waiting)
		w.mu.Unlock()
		if here >= w.crowd {
			return
		}
		runtime.Gosched()
	}
}

// abandon rolls back a batch after a panic that its caller may survive, because others wait.
func (w *writer) abandon() {
	if w.batch == nil {
		return
	}
	w.rollback()
	for _, j := range w.batch {
		answer(j, abandoned(w.path))
	}
	w.batch = nil
}

// close executes waiting commands and keeps the turn.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	w.turn <- struct{}{}
	close(w.ended)
	for todo := w.take(nil, mostInBatch); len(todo) > 0; todo = w.take(nil, mostInBatch) {
		w.settle(todo)
	}
	return w.conn.close()
}

// settle executes commands until the rest is durable, each time without the one that failed the batch.
func (w *writer) settle(todo []*job) {
	for len(todo) > 0 {
		ran, spoiler, err := w.attempt(todo)
		if spoiler < 0 {
			return
		}
		answer(ran[spoiler], err)
		todo = slices.Delete(ran, spoiler, spoiler+1)
	}
}

// answered is an executed command with its answer for when the batch is durable.
type answered struct {
	job   *job
	err   error
	after []func(bool)
}

// attempt executes commands in one transaction and adds those that arrive meanwhile. If one fails after a write, or
// breaks the transaction, it rolls back and returns its index. Otherwise spoiler is -1 and all callers have answers.
func (w *writer) attempt(todo []*job) (ran []*job, spoiler int, err error) {
	if err := w.begin(); err != nil {
		for _, j := range todo {
			answer(j, failure(err, w.path, notCommitted))
		}
		return nil, -1, nil
	}
	w.batch = todo
	var done []answered
	wrote, rings := false, false
	for i := 0; i < len(todo); i++ {
		j := todo[i]
		tx := Tx{Conn: w.conn}
		err := j.run(&tx)
		done = append(done, answered{j, err, tx.after})
		if err != nil && (tx.wrote || kind(err) != 0) { // SQLite may have rolled back by itself
			w.rollback()
			runAfter(done, false)
			w.batch = nil
			return todo, i, failure(err, w.path, notCommitted)
		}
		wrote, rings = wrote || tx.wrote, rings || tx.rings && err == nil
		if i == len(todo)-1 && len(todo) < mostInBatch {
			todo = w.take(todo, mostInBatch)
			w.batch = todo
		}
	}
	if _, err := w.conn.Exec("COMMIT"); err != nil {
		w.rollback()
		runAfter(done, false)
		w.batch = nil
		result := unknown
		if !wrote || Busy(err) || full(err) {
			result = notCommitted
		}
		for _, a := range done {
			if a.err == nil {
				a.err = failure(err, w.path, result)
			}
			answer(a.job, failure(a.err, w.path, notCommitted))
		}
		return nil, -1, nil
	}
	w.version, _ = w.conn.Version() // -1 on error
	runAfter(done, true)
	w.batch = nil
	if rings {
		_ = ring(w.path) // the watchers also look by themselves
	}
	w.crowd = 0
	for _, a := range done {
		if a.job.done != nil {
			w.crowd++
		}
		answer(a.job, failure(a.err, w.path, notCommitted))
	}
	w.shorten()
	return nil, -1, nil
}

func answer(j *job, err error) {
	if j.done != nil {
		j.done <- err
	}
}

func runAfter(done []answered, committed bool) {
	for _, a := range done {
		for _, call := range a.after {
			call(committed && a.err == nil)
		}
	}
}

// begin takes the file's lock and detects writes of other processes.
func (w *writer) begin() error {
	if err := w.claim.judge(); err != nil {
		return err
	}
	deadline, pause := time.Now().Add(lockPatience), 50*time.Microsecond
	for {
		_, err := w.conn.Exec("BEGIN IMMEDIATE")
		if err == nil {
			break
		}
		if !Busy(err) || time.Now().After(deadline) {
			return err
		}
		w.others = time.Now()
		time.Sleep(pause)
		pause = min(2*pause, 2*time.Millisecond)
	}
	if err := w.place.judge(); err != nil {
		w.rollback()
		return err
	}
	version, err := w.conn.Version()
	if err != nil {
		w.rollback()
		return err
	}
	if version != w.version {
		if w.version >= 0 {
			w.others = time.Now()
		}
		w.dropCache()
	}
	return nil
}

// rollback rolls back the batch and drops the cache, which may contain its writes.
func (w *writer) rollback() {
	_, _ = w.conn.Exec("ROLLBACK") // fails if SQLite has rolled back
	w.version = -1
	w.dropCache()
}
