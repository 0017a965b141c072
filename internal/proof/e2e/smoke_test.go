//go:build e2e

package e2e

import (
	"os/exec"
	"testing"
	"time"
)

// wantSound checks the deployment as an operator would in an account.
func (d *deployed) wantSound(t *testing.T) {
	t.Helper()
	smoke := exec.CommandContext(t.Context(), "go", "run", "./internal/proof/smoke", "-stack", d.name, "-each", "2")
	smoke.Dir, smoke.Stdout, smoke.Stderr = root, t.Output(), t.Output()
	if err := smoke.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- smoke.Wait() }()
	if err := d.tickUntil(t, ended); err != nil {
		t.Error(err)
	}
	d.wantNoViolations(t)
}

// tickUntil ticks every two seconds, as the schedule does every minute in an account, until something has ended.
func (d *deployed) tickUntil(t *testing.T, ended <-chan error) error {
	t.Helper()
	every := time.NewTicker(2 * time.Second)
	defer every.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-every.C:
			if err := d.stack.Tick(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}
