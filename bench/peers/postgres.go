package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	postgresUser = "peers"
	// poolConnections is more than ever are busy at once: inserters, fetching, completing, listening, maintenance.
	poolConnections = 64
	// maxConnections leaves room for a pool of each kind.
	maxConnections = 200
)

// debianPostgres is where Debian keeps what it leaves out of PATH.
const debianPostgres = "/usr/lib/postgresql/*/bin"

// postgres is a server with a fresh data base, reached through a socket in its folder and nowhere else.
type postgres struct {
	*child
	socketDir string
	version   string
}

func startPostgres(ctx context.Context, p *place) (*postgres, error) {
	initdb, err := findProgram("initdb", debianPostgres)
	if err != nil {
		return nil, err
	}
	server, err := findProgram("postgres", filepath.Dir(initdb), debianPostgres)
	if err != nil {
		return nil, err
	}
	owner, err := serverAccount()
	if err != nil {
		return nil, err
	}
	dir, err := p.folder("postgres", owner)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	// What initdb writes need not outlive us; what the server writes later is synced as by default.
	create := newCommand(
		owner, dir, initdb, "-D", data, "-U", postgresUser, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync",
	)
	if output, err := create.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, strings.TrimSpace(string(output)))
	}
	c, err := startChild(
		dir, owner, server, "-D", data, "-k", dir, "-c", "listen_addresses=", "-c",
		fmt.Sprint("max_connections=", maxConnections),
	)
	if err != nil {
		return nil, err
	}
	pg := &postgres{child: c, socketDir: dir}
	if err := c.await(ctx, pg.ask); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return pg, nil
}

// ask reads the version.
func (pg *postgres) ask(ctx context.Context) (err error) {
	connection, err := pgx.Connect(ctx, pg.address())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, connection.Close(ctx)) }()
	return connection.QueryRow(ctx, "SHOW server_version").Scan(&pg.version)
}

func (pg *postgres) address() string {
	return fmt.Sprintf("host=%s user=%s dbname=postgres sslmode=disable", pg.socketDir, postgresUser)
}

// pool makes connections of which each commit waits for the disk ("on", PostgreSQL's default), or does not ("off").
func (pg *postgres) pool(ctx context.Context, synchronousCommit string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(pg.address())
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = poolConnections
	cfg.MaxConnIdleTime = time.Hour
	cfg.ConnConfig.RuntimeParams["synchronous_commit"] = synchronousCommit
	return pgxpool.NewWithConfig(ctx, cfg)
}
