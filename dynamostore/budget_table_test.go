package dynamostore

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/internal/tools/costs"
)

// price is what docs/internals/layout.md says of a step: what it uses.
type price struct {
	Usage
	beyond bool // above a simple run
}

// dollars are those for a million.
func dollars(u Usage) float64 { return costs.Use{Writes: u.WriteUnits, Reads: u.ReadUnits}.Units() }

// document is the source of every number that TestBudget demands.
const document = "../docs/internals/layout.md"

// priceText is what stands in the last three cells of a row.
var priceText = regexp.MustCompile(`^(\+ )?(\d+) \| (\d+(?:\.5)?) \| (\d+)$`)

// budget reads the table of docs/internals/layout.md, Budget. A step's name ends at the colon, behind which stands what its price consists of.
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
		match := priceText.FindStringSubmatch(strings.Join(cells[1:], " | "))
		if match == nil {
			faults = append(faults, "the price cannot be read: "+line)
			continue
		}
		p := price{beyond: match[1] != ""}
		p.WriteUnits, _ = strconv.ParseFloat(match[2], 64)
		p.ReadUnits, _ = strconv.ParseFloat(match[3], 64)
		p.Requests, _ = strconv.ParseInt(match[4], 10, 64)
		if total, ok := sumOf(parts); ok && total != p.WriteUnits {
			faults = append(faults, "the parts are not the sum: "+line)
		}
		if _, twice := prices[name]; twice {
			faults = append(faults, "twice: "+line)
		}
		prices[name] = p
	}
	return prices, faults
}

var sumPart = regexp.MustCompile(`\d+$`)

// sumOf adds up "7 + 1" or "inspection 3, request 6"; ok is false where a part has no number.
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
