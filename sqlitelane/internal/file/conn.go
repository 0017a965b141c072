package file

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net/url"

	"modernc.org/sqlite"
)

// Conn is a connection to the file with its prepared statements, for one goroutine at a time.
//
// It uses the driver without database/sql: this package assigns the connections itself, and a commit's statements cost
// half as much.
type Conn struct {
	raw        driver.Conn
	statements map[string]driver.Stmt
	arguments  []driver.NamedValue
	within     context.Context // during Within, else nil
}

// mostStatements bounds the cached statements: the text of a few contains a list of queues.
const mostStatements = 256

// connect opens the file with a virtual file system, "" for the default.
func connect(path, vfs string) (*Conn, error) {
	if vfs == "" {
		return connectTo(path, "")
	}
	return connectTo(path, url.Values{"vfs": {vfs}}.Encode())
}

// connectTo opens the file with SQLite's URI parameters.
func connectTo(path, parameters string) (*Conn, error) {
	name := url.URL{Scheme: "file", Path: path, RawQuery: parameters}
	raw, err := (&sqlite.Driver{}).Open(name.String())
	if err != nil {
		return nil, err
	}
	return &Conn{raw: raw, statements: map[string]driver.Stmt{}}, nil
}

func (c *Conn) close() error {
	var faults []error
	for _, s := range c.statements {
		faults = append(faults, s.Close())
	}
	clear(c.statements)
	return errors.Join(append(faults, c.raw.Close())...)
}

// prepare returns a cached statement and its arguments for the driver.
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

// Within cancels the statements of do with the context. Other statements are short and ignore contexts: watching one
// costs more than the statement.
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

// Exec executes a statement. Arguments are int64, string, []byte or nil.
func (c *Conn) Exec(text string, arguments ...any) (driver.Result, error) {
	s, bound, err := c.prepare(text, arguments)
	if err != nil {
		return nil, err
	}
	return s.(driver.StmtExecContext).ExecContext(c.context(), bound)
}

// Each calls row for each row of a query until it returns false. The slice is valid only during the call, its strings
// and bytes forever. Meanwhile no other query may have the same text.
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

// One returns a query's first row, or nil.
func (c *Conn) One(text string, arguments ...any) (found []driver.Value, err error) {
	err = c.Each(text, func(row []driver.Value) (bool, error) {
		found = row
		return false, nil
	}, arguments...)
	return found, err
}

// Version changes with each commit that the connection makes, or sees when it begins a transaction. It is -1 on error.
// PRAGMA data_version ignores own commits and is a query.
func (c *Conn) Version() (int64, error) {
	version, err := c.raw.(sqlite.FileControl).FileControlDataVersion("main")
	if err != nil {
		return -1, err
	}
	return int64(version), nil
}

// Number returns the number in a query's first row, or 0.
func (c *Conn) Number(text string, arguments ...any) (int64, error) {
	row, err := c.One(text, arguments...)
	if err != nil || row == nil {
		return 0, err
	}
	n, _ := row[0].(int64)
	return n, nil
}
