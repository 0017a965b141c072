package memlane_test

import (
	"testing"

	"github.com/runlane/runlane-go/internal/proof/histories"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

func TestStorage_ScansSayWhatProjectionsSay(t *testing.T) {
	t.Parallel()
	histories.Check(t, func() lane.Storage { return memlane.NewStorage(nil) })
}

func TestStorage_SlotsAreWhatOutcomesSay(t *testing.T) {
	t.Parallel()
	histories.CheckSlots(t, func() lane.Storage { return memlane.NewStorage(nil) })
}

func TestOffer_RunThatWaitsAgainIsOfferedAgain(t *testing.T) {
	t.Parallel()
	histories.CheckOffers(t, memlane.NewStorage(nil))
}
