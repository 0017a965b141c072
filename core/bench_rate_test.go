package core_test

import (
	"testing"

	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

func BenchmarkRate(b *testing.B) {
	scenarios.BenchmarkRate(b, func(*testing.B) *lane.Lane { return memlane.New() })
}
