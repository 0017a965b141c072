package core_test

import (
	"testing"

	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/memlane"
)

func BenchmarkSignalToStart(b *testing.B) {
	b.Run("memory", func(b *testing.B) { scenarios.BenchmarkSignalToStart(b, memlane.New()) })
}
