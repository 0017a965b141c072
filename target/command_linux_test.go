package target_test

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
)

// A command does not go on beside its repetition by the next worker.
func TestCommand_EndsWithAWorkerThatIsKilled(t *testing.T) {
	t.Parallel()
	const inWorker = "TARGET_TEST_WORKER"
	if os.Getenv(inWorker) != "" {
		_, err := execute(t, "    command: {run: [sh, -c, 'echo up >&3; exec sleep 1000']}", "{}")
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if err := read.SetDeadline(time.Now().Add(patience.Limit)); err != nil {
		t.Fatal(err)
	}
	worker := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	worker.Env, worker.ExtraFiles = append(os.Environ(), inWorker+"=1"), []*os.File{write}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	if _, err := io.ReadFull(read, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	if rest, err := io.ReadAll(read); err != nil { // it ends when nobody can write any more
		t.Errorf("the command goes on: %q, %v", rest, err)
	}
}
