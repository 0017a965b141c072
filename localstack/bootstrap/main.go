// Command bootstrap prepares a local AWS: it chooses free ports, waits until an endpoint answers, and creates the table
// and queues of package infra. The scripts next to it call it.
//
//	bootstrap ports COUNT            prints that many free TCP ports of the loopback interface, one a line
//	bootstrap wait URL DURATION      returns once the endpoint answers HTTP
//	bootstrap create ENV_FILE        creates table and queues at AWS_ENDPOINT_URL and writes ENV_FILE
//
// create reads AWS_ENDPOINT_URL, AWS_REGION, RUNLANE_TABLE, RUNLANE_ENV, RUNLANE_LOCAL_QUEUES and
// RUNLANE_LOCAL_DYNAMODB. All commands are idempotent. The exit status is 2 for a wrong setting, when a retry is
// useless.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/runlane/runlane-go/internal/tools/freeport"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "local AWS:", err)
		if errors.As(err, new(settingsError)) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: bootstrap ports COUNT | wait URL DURATION | create ENV_FILE")

type settingsError struct{ error }

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "ports":
		count, err := strconv.Atoi(args[1])
		if err != nil || count < 1 || count > 100 {
			return errUsage
		}
		return printFreePorts(count)
	case len(args) == 3 && args[0] == "wait":
		limit, err := time.ParseDuration(args[2])
		if err != nil {
			return errUsage
		}
		return waitFor(ctx, args[1], limit)
	case len(args) == 2 && args[0] == "create":
		s, err := settingsFromEnvironment(os.Getenv)
		if err != nil {
			return settingsError{err}
		}
		return create(ctx, s, args[1])
	}
	return errUsage
}

func printFreePorts(count int) error {
	ports, err := freeport.Choose(count)
	for _, port := range ports {
		fmt.Println(port)
	}
	return err
}

// waitFor returns once the endpoint's root answers with a status below 500.
func waitFor(ctx context.Context, url string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	pause := time.NewTicker(200 * time.Millisecond)
	defer pause.Stop()
	for {
		err := probe(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer after %s: %w", url, limit, err)
		case <-pause.C:
		}
	}
}

func probe(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}
