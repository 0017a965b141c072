package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/runlane/runlane-go/internal/tools/freeport"
)

const (
	startTime = 90 * time.Second // a busy machine
	startLook = 50 * time.Millisecond
	// commitTime is more than DynamoDB Local takes from its answer to its commit.
	commitTime = 300 * time.Millisecond
)

// Emulator is a DynamoDB Local whose data outlives it. Its methods are not for concurrent use, but for Where.
type Emulator struct {
	// Java is the program, Folder where DynamoDBLocal.jar is, Data an existing separate folder.
	Java, Folder, Data string

	url     atomic.Pointer[string] // nil: nowhere
	deaf    atomic.Bool            // what it carries out, no client hears of
	command *exec.Cmd
	exited  chan struct{}
}

// Where it listens, which changes with every start, and whether it is about to end.
func (e *Emulator) Where() (url string, deaf bool) {
	if at := e.url.Load(); at != nil {
		url = *at
	}
	return url, e.deaf.Load()
}

// Start starts it with the data that it has, and returns when it answers.
func (e *Emulator) Start(ctx context.Context) error {
	ports, err := freeport.Choose(1)
	if err != nil {
		return err
	}
	port := strconv.Itoa(ports[0])
	log, err := os.OpenFile(e.logFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	// the process has its own
	defer log.Close()
	command := exec.Command( // it ends with Kill
		e.Java, "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"-Djava.library.path="+filepath.Join(e.Folder, "DynamoDBLocal_lib"), "-jar",
		filepath.Join(e.Folder, "DynamoDBLocal.jar"),
		"-port", port, "-dbPath", e.Data, "-disableTelemetry",
	)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	e.command, e.exited = command, exited
	go func() { // ends with the process
		defer close(exited)
		_ = command.Wait()
	}()
	url := "http://127.0.0.1:" + port
	if err := e.await(ctx, url); err != nil {
		e.Kill()
		return err
	}
	e.deaf.Store(false)
	e.url.Store(&url)
	return nil
}

// Crash ends it in the middle of its work. DynamoDB Local commits what it writes shortly after it has answered, which
// DynamoDB does not; so for a moment before its end it works on, and no client gets an answer.
func (e *Emulator) Crash(ctx context.Context) {
	e.deaf.Store(true)
	timer := time.NewTimer(commitTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	e.Kill()
}

// Kill ends it at once, and waits for that. It may be down already.
func (e *Emulator) Kill() {
	e.url.Store(nil)
	if e.command == nil {
		return
	}
	if err := e.command.Process.Kill(); err == nil || errors.Is(err, os.ErrProcessDone) {
		<-e.exited
	}
	e.command = nil
}

// Log is what it wrote, for those who look for a reason.
func (e *Emulator) Log() string {
	text, _ := os.ReadFile(e.logFile()) // nothing is an answer
	return string(text)
}

func (e *Emulator) logFile() string { return filepath.Join(e.Data, "log") }

// await returns when it answers, whatever it says.
func (e *Emulator) await(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ticker := time.NewTicker(startLook)
	defer ticker.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			return response.Body.Close()
		}
		select {
		case <-ticker.C:
		case <-e.exited:
			return fmt.Errorf("DynamoDB Local ended: %s", e.Log())
		case <-ctx.Done():
			return fmt.Errorf("DynamoDB Local does not answer: %w: %s", ctx.Err(), e.Log())
		}
	}
}
