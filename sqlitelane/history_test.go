package sqlitelane_test

import (
	"testing"

	"github.com/runlane/runlane-go/internal/proof/histories"
	"github.com/runlane/runlane-go/lane"
)

func TestStorage_ScansSayWhatProjectionsSay(t *testing.T) {
	t.Parallel()
	s := started(t, newPath(t), 0)
	histories.Check(t, func() lane.Storage { return s })
}

func TestStorage_SlotsAreWhatOutcomesSay(t *testing.T) {
	t.Parallel()
	s := started(t, newPath(t), 0)
	histories.CheckSlots(t, func() lane.Storage { return s })
}

func TestOffer_RunThatWaitsAgainIsOfferedAgain(t *testing.T) {
	t.Parallel()
	histories.CheckOffers(t, started(t, newPath(t), 0))
}
