package item

import (
	"testing"
)

// AWS bills significant digits: zeros before and behind them are trimmed, as in instants that end with whole seconds.
func TestMeter_Numbers_AreBilledBySignificantDigits(t *testing.T) {
	t.Parallel()
	for n, size := range map[string]int{
		"5": 2, "50": 2, "1000000": 2, "12": 2, "123": 3, "12300": 3, "1234": 3, "-7": 3, "-700": 3, "0.001": 2, "100.5": 3, "0012": 2,
		"1772625600000": 5, "1772625600123": 8,
	} {
		if got := numberSize(n); got != size {
			t.Errorf("%s has %d bytes, want %d", n, got, size)
		}
	}
}
