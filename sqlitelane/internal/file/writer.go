package file

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// mostInBatch bounds the commands of one commit, and so how long others wait for the lock.
	mostInBatch = 256
	// laterBy is how long a command that no caller waits for may wait for the company of another.
	laterBy = 10 * time.Millisecond
	// lockPatience is how long a commit waits for the lock of another process.
	lockPatience = 10 * time.Second
	// wary is how long after another process wrote its next turn is thought of. Until then each commit leaves the lock
	// free for giveWay: who asks for a lock again and again finds it free for an instant only.
	wary    = 100 * time.Millisecond
	giveWay = 300 * time.Microsecond
)

// Tx is the transaction of a batch, as one command sees it. A command reads first and is refused before its first
// write: then no other command of the batch notices. One that fails after a write takes the batch back, and the others
// are carried out again without it.
type Tx struct {
	*Conn
	wrote bool
	rings bool
	after []func(committed bool)
}

// Exec writes.
func (tx *Tx) Exec(text string, arguments ...any) (err error) {
	tx.wrote = true
	_, err = tx.Conn.Exec(text, arguments...)
	return err
}

// Insert is Exec for a new row, whose number it returns.
func (tx *Tx) Insert(text string, arguments ...any) (row int64, err error) {
	tx.wrote = true
	result, err := tx.Conn.Exec(text, arguments...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// After is called when the batch has ended: with true once the command's writes are durable, with false when they were
// taken back. It must not block.
func (tx *Tx) After(call func(committed bool)) { tx.after = append(tx.after, call) }

// job is a command that waits for its batch.
type job struct {
	run   func(*Tx) error
	taken atomic.Bool // by the writer, or by its caller, who does not wait any more
	done  chan error  // nil where no caller waits
}

// writer is the only one of its process that writes the file.
type writer struct {
	path    string
	conn    *Conn
	jobs    sync.Pool // of one file: a test in a bubble of time has its own channels
	waiting chan *job
	stop    chan struct{}
	ended   chan struct{}

	// foreign is called at the beginning of a batch, under the lock, when another process wrote since the last one, or
	// a batch was taken back: what is remembered of the file does not hold any more.
	foreign func()
	version int64     // of the data, as the last batch left it
	others  time.Time // when another process was last seen to write

	mu    sync.Mutex
	later []func(*Tx) error
	timer *time.Timer
}

func newWriter(path string, c *Conn) *writer {
	w := &writer{
		path: path, conn: c, waiting: make(chan *job, mostInBatch), stop: make(chan struct{}),
		ended:   make(chan struct{}),
		foreign: func() {}, version: -1,
	}
	w.jobs.New = func() any { return &job{done: make(chan error, 1)} }
	go w.loop() // ends with close
	return w
}

// Remember sets what forgets what is remembered of the file. It is called under the writer's lock.
func (f *File) Remember(forget func()) { f.writer.foreign = forget }

// Write carries a command out in a transaction that it may share with others, and returns when that is durable. The
// command may be called several times; the last call counts. An error of the command is returned as it is, and then it
// wrote nothing.
func (f *File) Write(ctx context.Context, run func(*Tx) error) error {
	if f.effect != nil {
		run = traced(run, f.effect())
	}
	j := f.writer.jobs.Get().(*job)
	j.run = run
	j.taken.Store(false)
	select {
	case f.writer.waiting <- j:
	case <-f.done:
		return closed(f.path)
	case <-ctx.Done():
		return cancelled(ctx)
	}
	select {
	case err := <-j.done:
		j.run = nil
		f.writer.jobs.Put(j)
		return err
	case <-ctx.Done():
	case <-f.writer.ended:
	}
	if j.taken.CompareAndSwap(false, true) { // the writer passes over it
		if ctx.Err() != nil {
			return cancelled(ctx)
		}
		return closed(f.path)
	}
	return <-j.done // it is in a batch: its outcome is known in a moment
}

// Later carries a command out soon, with the next batch at the latest. No caller learns how it ended, and a crash may
// forget it.
func (f *File) Later(run func(*Tx) error) {
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

// nudge makes a batch begin.
func (w *writer) nudge() {
	j := &job{run: func(*Tx) error { return nil }}
	select {
	case w.waiting <- j:
	default: // a batch begins anyway
	}
}

func (w *writer) takeLater() []*job {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := make([]*job, len(w.later))
	for i, run := range w.later {
		taken[i] = &job{run: run}
	}
	w.later = w.later[:0]
	return taken
}

func (w *writer) close() error {
	close(w.stop)
	<-w.ended
	w.mu.Lock()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	return w.conn.close()
}

func (w *writer) loop() {
	defer close(w.ended)
	for {
		select {
		case j := <-w.waiting:
			w.batch(j)
		case <-w.stop:
			for {
				select {
				case j := <-w.waiting:
					w.batch(j)
					continue
				default:
				}
				if later := w.takeLater(); len(later) > 0 {
					w.settle(later)
				}
				return
			}
		}
	}
}

// batch carries out what waits. Commands that come while it works belong to it, too.
func (w *writer) batch(first *job) {
	if !time.Now().After(w.others.Add(wary)) {
		time.Sleep(giveWay)
	}
	if first.taken.CompareAndSwap(false, true) {
		w.settle(append(w.takeLater(), first))
	}
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
			return todo, i, failure(err, w.path, notCommitted)
		}
		wrote, rings = wrote || tx.wrote, rings || tx.rings && err == nil
		if i == len(todo)-1 && len(todo) < mostInBatch {
			todo = w.join(todo)
		}
	}
	if _, err := w.conn.Exec("COMMIT"); err != nil {
		w.rollback()
		tell(done, false)
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
	tell(done, true)
	if rings {
		w.ring()
	}
	for _, a := range done {
		answer(a.job, failure(a.err, w.path, notCommitted))
	}
	return nil, -1, nil
}

// join adds the commands that came meanwhile.
func (w *writer) join(todo []*job) []*job {
	for len(todo) < mostInBatch {
		select {
		case j := <-w.waiting:
			if j.taken.CompareAndSwap(false, true) {
				todo = append(todo, j)
			}
		default:
			return todo
		}
	}
	return todo
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
	version, err := w.conn.Number("PRAGMA data_version")
	if err != nil {
		w.rollback()
		return err
	}
	if version != w.version {
		if w.version >= 0 {
			w.others = time.Now()
		}
		w.version = version
		w.foreign()
	}
	return nil
}

// rollback takes the batch back. What is remembered of the file may be of it.
func (w *writer) rollback() {
	_, _ = w.conn.Exec("ROLLBACK") // which fails where SQLite has done so already
	w.foreign()
}
