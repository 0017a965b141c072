package dynamostore

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// price is what docs/layout.md says of a step: write units, for some steps also strong read units.
type price struct {
	writes, reads float64
	hasReads      bool
	beyond        bool // above a simple run
}

// document is the source of every number that TestBudget demands.
const document = "../docs/layout.md"

var priceText = regexp.MustCompile(`^(\+ )?(\d+)(?:, (\d+(?:\.5)?) reads)?$`)

// budget reads the table of docs/layout.md, Budget. A step's name ends at the colon, behind which stands what its price consists of.
func budget(t testing.TB) map[string]price {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	prices, faults := parseBudget(string(text))
	for _, fault := range faults {
		t.Error(fault)
	}
	if len(prices) < 10 {
		t.Fatalf("%s has %d steps", document, len(prices))
	}
	return prices
}

// parseBudget finds the table's steps, and what is wrong with them: a price that cannot be read, a sum that is not its parts', a
// step that is there twice.
func parseBudget(text string) (prices map[string]price, faults []string) {
	_, section, _ := strings.Cut(text, "\n## Budget\n")
	section, _, _ = strings.Cut(section, "\n## ")
	prices = map[string]price{}
	for _, line := range strings.Split(section, "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Step ") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.ReplaceAll(line, "**", ""), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != 4 {
			faults = append(faults, "not four cells: "+line)
			continue
		}
		name, parts, _ := strings.Cut(cells[0], ": ")
		match := priceText.FindStringSubmatch(cells[3])
		if match == nil {
			faults = append(faults, "the price cannot be read: "+line)
			continue
		}
		p := price{beyond: match[1] != "", hasReads: match[3] != ""}
		p.writes, _ = strconv.ParseFloat(match[2], 64)
		p.reads, _ = strconv.ParseFloat(match[3], 64)
		for _, sum := range []string{parts, cells[1] + " + " + cells[2]} {
			if total, ok := sumOf(sum); ok && total != p.writes {
				faults = append(faults, "the parts are not the sum: "+line)
			}
		}
		if _, twice := prices[name]; twice {
			faults = append(faults, "twice: "+line)
		}
		prices[name] = p
	}
	return prices, faults
}

var sumPart = regexp.MustCompile(`\d+$`)

// sumOf adds up "7 + 1" or "look 3, request 6"; ok is false where a part has no number.
func sumOf(text string) (total float64, ok bool) {
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '+' }) {
		n, err := strconv.ParseFloat(sumPart.FindString(part[:len(strings.TrimRight(part, " "))]), 64)
		if err != nil {
			return 0, false
		}
		total += n
	}
	return total, text != ""
}

func TestBudgetTable_TheRulesCanFail(t *testing.T) {
	t.Parallel()
	for row, sound := range map[string]bool{
		"| trigger: run and log | 4 | 1 | 5 |":                 true,
		"| **a simple run** | 13 | 3 | **16** |":               true,
		"| abandoned: look 3, request 6 | | | 9 |":             true,
		"| bounded: 7 + 1 + 6 | | | 14 |":                      true,
		"| deferred | | | + 4 |":                               true,
		"| duplicate | 0 | 0 | 0, 2 reads |":                   true,
		"| trigger: run and log | 4 | 1 | 6 |":                 false,
		"| abandoned: look 3, request 6 | | | 10 |":            false,
		"| wait | | | 10 · 17 |":                               false,
		"| wait | | 10 |":                                      false,
		"| a | | | 1 |\n| a | | | 1 |":                         false,
		"| heartbeat | 4 | 0 | four |":                         false,
		"| bounded: 7 + 1 + 6 | | | 15 |":                      false,
		"| duplicate | 0 | 0 | 2 reads |":                      false,
		"| **a simple run** | 13 | 3 | **17** |":               false,
		"| a | 1 | 0 | 1 |\n\n## Next\n\n| b | wrong | | no |": true,
	} {
		if _, faults := parseBudget("# X\n\n## Budget\n\n| Step | Table | Index | Sum |\n|---|---|---|---|\n" + row + "\n"); (len(faults) == 0) != sound {
			t.Errorf("%s: %v", row, faults)
		}
	}
}
