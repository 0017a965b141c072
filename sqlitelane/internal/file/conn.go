package file

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net/url"

	"modernc.org/sqlite"
)

// Conn is one connection to the file, with its prepared statements. One goroutine at a time may use it.
//
// It stands on the driver and not on database/sql: who may use a connection is decided here anyway, and the statements
// of a commit cost half as much.
type Conn struct {
	raw        driver.Conn
	statements map[string]driver.Stmt
	arguments  []driver.NamedValue
	within     context.Context // of Within alone; nil otherwise
}

// mostStatements bounds the statements that are kept: a few have lists of queues in their text.
const mostStatements = 256

// connect opens the file at path by the virtual file system vfs, "" for the usual one.
func connect(path, vfs string) (*Conn, error) {
	if vfs == "" {
		return connectTo(path, "")
	}
	return connectTo(path, url.Values{"vfs": {vfs}}.Encode())
}

// connectTo opens the file with parameters of SQLite's.
func connectTo(path, parameters string) (*Conn, error) {
	name := url.URL{Scheme: "file", Path: path, RawQuery: parameters}
	raw, err := (&sqlite.Driver{}).Open(name.String())
	if err != nil {
		return nil, err
	}
	return &Conn{raw: raw, statements: map[string]driver.Stmt{}}, nil
}

// close also frees the statements.
func (c *Conn) close() error {
	var faults []error
	for _, s := range c.statements {
		faults = append(faults, s.Close())
	}
	clear(c.statements)
	return errors.Join(append(faults, c.raw.Close())...)
}

// prepare returns the statement of a text, and its arguments in the driver's form.
func (c *Conn) prepare(text string, arguments []any) (driver.Stmt, []driver.NamedValue, error) {
	s := c.statements[text]
	if s == nil {
		if len(c.statements) >= mostStatements {
			for _, old := range c.statements {
				_ = old.Close()
			}
			clear(c.statements)
		}
		var err error
		if s, err = c.raw.Prepare(text); err != nil {
			return nil, nil, err
		}
		c.statements[text] = s
	}
	c.arguments = c.arguments[:0]
	for i, a := range arguments {
		if b, ok := a.([]byte); ok && b == nil {
			a = nil
		}
		c.arguments = append(c.arguments, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return s, c.arguments, nil
}

// Within lets the statements of do end with the context. Statements outside are short, and bound by none: to watch a
// context costs more than they do.
func (c *Conn) Within(ctx context.Context, do func() error) error {
	c.within = ctx
	defer func() { c.within = nil }()
	err := do()
	if err != nil && ctx.Err() != nil {
		return cancelled(ctx)
	}
	return err
}

func (c *Conn) context() context.Context {
	if c.within != nil {
		return c.within
	}
	return context.Background()
}

// Exec carries a statement out. Arguments are int64, string, []byte or nil.
func (c *Conn) Exec(text string, arguments ...any) (driver.Result, error) {
	s, bound, err := c.prepare(text, arguments)
	if err != nil {
		return nil, err
	}
	return s.(driver.StmtExecContext).ExecContext(c.context(), bound)
}

// Each calls row with each row of a query until it returns false. The row is only valid during the call, its texts and
// bytes for ever. No other query of the same text may be made meanwhile.
func (c *Conn) Each(text string, row func([]driver.Value) (more bool, err error), arguments ...any) (err error) {
	s, bound, err := c.prepare(text, arguments)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(c.context(), bound)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(values); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if more, err := row(values); err != nil || !more {
			return err
		}
	}
}

// One returns the first row of a query, nil when there is none.
func (c *Conn) One(text string, arguments ...any) (found []driver.Value, err error) {
	err = c.Each(text, func(row []driver.Value) (bool, error) {
		found = row
		return false, nil
	}, arguments...)
	return found, err
}

// Version is another number after each commit that the connection makes or sees when it begins a transaction, -1 with
// an error. PRAGMA data_version leaves its own commits out, and is a query.
func (c *Conn) Version() (int64, error) {
	version, err := c.raw.(sqlite.FileControl).FileControlDataVersion("main")
	if err != nil {
		return -1, err
	}
	return int64(version), nil
}

// Number is the number that a query returns, 0 when it returns none.
func (c *Conn) Number(text string, arguments ...any) (int64, error) {
	row, err := c.One(text, arguments...)
	if err != nil || row == nil {
		return 0, err
	}
	n, _ := row[0].(int64)
	return n, nil
}
