package file

// Tx is a batch's transaction as one command sees it. A command that fails before its first write does not affect the
// others. One that fails after a write rolls back the batch, and the others are executed again without it.
type Tx struct {
	*Conn
	wrote bool
	rings bool
	after []func(committed bool)
}

// Exec executes a write.
func (tx *Tx) Exec(text string, arguments ...any) (err error) {
	tx.wrote = true
	_, err = tx.Conn.Exec(text, arguments...)
	return err
}

// Insert is Exec for a new row. It returns the row's number, 0 if ON CONFLICT DO NOTHING skipped it: then nothing was
// written.
func (tx *Tx) Insert(text string, arguments ...any) (row int64, err error) {
	wrote := tx.wrote
	tx.wrote = true
	result, err := tx.Conn.Exec(text, arguments...)
	if err != nil {
		return 0, err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		tx.wrote = wrote
		return 0, err
	}
	return result.LastInsertId()
}

// After calls call after the batch: with true once the command is durable, with false if it was rolled back. call must
// not block.
func (tx *Tx) After(call func(committed bool)) { tx.after = append(tx.after, call) }
