package sqlitelane_test

import (
	"testing"

	"github.com/runlane/runlane-go/internal/proof/lives"
)

func TestOffer_RunThatWaitsAgainIsOfferedAgain(t *testing.T) {
	t.Parallel()
	lives.CheckOffers(t, started(t, newPath(t), 0))
}
