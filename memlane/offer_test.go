package memlane_test

import (
	"testing"

	"github.com/runlane/runlane-go/internal/proof/lives"
	"github.com/runlane/runlane-go/memlane"
)

func TestOffer_RunThatWaitsAgainIsOfferedAgain(t *testing.T) {
	t.Parallel()
	lives.CheckOffers(t, memlane.NewStorage(nil))
}
