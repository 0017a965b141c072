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
	// mostInBatch bounds the commands of one commit, and so how long others wait for the lock.
	mostInBatch = 256
	// mostYields is how often a batch lets other goroutines run before it begins.
	mostYields = 2
	// laterBy is how long a command that no caller waits for may wait for the company of another.
	laterBy = 10 * time.Millisecond
	// lockPatience is how long a commit waits for the lock of another process.
	lockPatience = 10 * time.Second
	// wary is how long after another process wrote its next turn is thought of. Until then each commit leaves the lock
	// free for giveWay: who asks for a lock again and again finds it free for an instant only.
	wary    = 100 * time.Millisecond
	giveWay = 300 * time.Microsecond
)

// job is a command that waits for its batch.
type job struct {
	run   func(*Tx) error
	taken atomic.Bool // into a batch, or by its caller, who does not wait any more
	done  chan error  // nil where no caller waits
}

// writer is the only one of its process that writes the file: who has the turn. A caller that finds it free carries
// out its own command and those of all that wait, so that one who is alone needs no other goroutine.
type writer struct {
	path  string
	place place
	claim *claim
	conn  *Conn
	jobs  sync.Pool     // of one file: a test in a bubble of time has its own channels
	turn  chan struct{} // has room for one: who put something in has the turn, the last one for good
	ended chan struct{} // closed with the last turn

	// foreign is called at the beginning of a batch, under the lock, when another process wrote since the last one, or
	// a batch was taken back: what is remembered of the file does not hold any more.
	foreign func()
	version int64     // of the data, as the last commit left it; -1: not known
	others  time.Time // when another process was last seen to write
	batch   []*job    // that is carried out and has no answers yet
	log     logSize
	crowd   int // how many callers the last batch answered

	mu      sync.Mutex
	waiting []*job
	later   []func(*Tx) error
	timer   *time.Timer
	closed  bool
}

func newWriter(p place, c *Conn) *writer {
	w := &writer{
		path: p.path, place: p, conn: c, turn: make(chan struct{}, 1), ended: make(chan struct{}),
		foreign: func() {}, version: -1,
	}
	w.jobs.New = func() any { return &job{done: make(chan error, 1)} }
	return w
}

// Remember sets what forgets what is remembered of the file. It is called under the writer's lock.
func (f *File) Remember(forget func()) {
	if !f.readOnly {
		f.writer.foreign = forget
	}
}

// Write carries a command out in a transaction that it may share with others, and returns when that is durable. The
// command may be called several times, by any caller's goroutine; the last call counts. An error of the command is
// returned as it is, and then it wrote nothing.
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
			w.lead(j)
		case <-ctx.Done():
			if j.taken.CompareAndSwap(false, true) { // the writer passes over it
				return cancelled(ctx)
			}
			return <-j.done // it is in a batch: its outcome is known in a moment
		}
	}
}

// enqueue lets a command wait; false when the file is closed.
func (w *writer) enqueue(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.waiting = append(w.waiting, j)
	}
	return !w.closed
}

// Later carries a command out soon, with the next batch at the latest. No caller learns how it ended, and a crash may
// forget it.
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

// traced tells when a command is durable.
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

// nudge carries out what is to be done later.
func (w *writer) nudge() {
	select {
	case w.turn <- struct{}{}:
		w.lead(nil)
	case <-w.ended:
	}
}

// take takes what waits, room commands at most, and what is to be done later.
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

// lead carries out a batch: what waits, and what comes while it works. It has the turn, and gives it back. The caller's
// own command is nil, or was perhaps carried out by the one before.
func (w *writer) lead(own *job) {
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
	w.await()
	w.settle(w.take(nil, mostInBatch))
}

// await lets callers of the last batch run, which are about to come again: a commit costs as much for one as for many.
// Who was alone does not wait.
func (w *writer) await() {
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

// abandon takes back a batch whose leader was torn out of it, by a panic that its caller may survive: others wait.
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

// close carries out what waits, and keeps the turn.
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

// settle carries commands out, without those that spoil the batch for the others, until the rest is durable.
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

// answered is a command that ran, with what its caller is to hear once the batch is durable.
type answered struct {
	job   *job
	err   error
	after []func(bool)
}

// attempt carries commands out in one transaction, and adds those that come meanwhile. If one of them fails after a
// write, or nothing at all can be done with it, everything is taken back, and the place of that one is returned.
// Otherwise spoiler is -1, and every caller has its answer.
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
		if err != nil && (tx.wrote || kind(err) != 0) { // SQLite may have taken the transaction back by itself
			w.rollback()
			tell(done, false)
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
		tell(done, false)
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
	w.version, _ = w.conn.Version() // -1 with an error
	tell(done, true)
	w.batch = nil
	if rings {
		_ = ring(w.path) // the watchers look by themselves, a little later
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

func tell(done []answered, committed bool) {
	for _, a := range done {
		for _, call := range a.after {
			call(committed && a.err == nil)
		}
	}
}

// begin takes the lock of the file, and finds out whether another process wrote since it was last held.
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
		w.foreign()
	}
	return nil
}

// rollback takes the batch back. What is remembered of the file may be of it.
func (w *writer) rollback() {
	_, _ = w.conn.Exec("ROLLBACK") // which fails where SQLite has done so already
	w.version = -1
	w.foreign()
}
