package file

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

// Insert is Exec for a new row, whose number it returns: 0 where a conflict leaves it out, and then it wrote nothing.
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

// After is called when the batch has ended: with true once the command's writes are durable, with false when they were
// taken back. It must not block.
func (tx *Tx) After(call func(committed bool)) { tx.after = append(tx.after, call) }
