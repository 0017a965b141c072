package costs_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkCosts prints the rows of docs/prices.md, which TestCosts_AreWhatTheDocumentSays measures, as benchmark lines.
func BenchmarkCosts(b *testing.B) {
	text, err := os.ReadFile(document)
	if err != nil {
		b.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "<!-- measured -->\n")
	part, _, _ = strings.Cut(part, "<!-- end of measured -->")
	rows := strings.Split(strings.TrimSpace(part), "\n")
	if len(rows) < 10 {
		b.Fatalf("%s has %d rows", document, len(rows))
	}
	for _, line := range rows[2:] {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		b.Run(cells[0], func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			for i, unit := range []string{"write-units", "read-units", "requests", "wakeups", "$/million"} {
				value, err := strconv.ParseFloat(cells[i+1], 64)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(value, unit)
			}
		})
	}
}
