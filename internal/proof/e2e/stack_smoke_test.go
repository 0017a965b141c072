//go:build e2e

package main

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
)

// wantSound checks the deployment as an operator would in an account.
func (d *deployed) wantSound(t *testing.T) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { // ends with the check
		ended <- checkStack(t.Context(), d.stack.outputs, wish{each: 2, patience: patience.Limit, memory: 256}, t.Output())
	}()
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
			if err := d.stack.tick(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}
