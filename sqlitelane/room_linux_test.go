package sqlitelane_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane"
)

// fullVariable makes the test below open the file which it names, and no more.
const fullVariable = "SQLITELANE_TEST_FULL"

// A file that no process has open needs room before it can be read: the error says so, and may be repeated.
func TestOpen_NoRoom_SaysThatTheDiskIsFull(t *testing.T) {
	if path := os.Getenv(fullVariable); path != "" {
		fullChild(path)
		return
	}
	t.Parallel()
	path := newPath(t)
	l, err := sqlitelane.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	open := func(want string) {
		t.Helper()
		child := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 8 && exec "$0" -test.run "^$1$"`, os.Args[0], t.Name()) // a few KB a file
		child.Env = append(os.Environ(), fullVariable+"="+path)
		if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %s", err, out)
		}
	}
	open("storage_unavailable: the disk of")
	if err := l.Start(t.Context(), lane.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	open("opened") // beside a process that has it open
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func fullChild(path string) {
	signal.Ignore(syscall.SIGXFSZ)
	_, err := sqlitelane.Open(context.Background(), path, nil)
	if err != nil {
		fmt.Println(runlane.CodeOf(err), err)
		return
	}
	fmt.Println("opened")
}
