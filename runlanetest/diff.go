package runlanetest

import "strings"

// diff marks missing lines with "-" and unexpected ones with "+", by the longest common subsequence.
func diff(want, got []string, equal func(want, got string) bool) string {
	// common[i][j] is the length of the longest common subsequence of want[i:] and got[j:].
	common := make([][]int, len(want)+1)
	for i := range common {
		common[i] = make([]int, len(got)+1)
	}
	for i := len(want) - 1; i >= 0; i-- {
		for j := len(got) - 1; j >= 0; j-- {
			if equal(want[i], got[j]) {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var lines []string
	i, j := 0, 0
	for i < len(want) || j < len(got) {
		switch {
		case i < len(want) && j < len(got) && equal(want[i], got[j]):
			lines = append(lines, "    "+got[j])
			i, j = i+1, j+1
		case j == len(got) || i < len(want) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, "  - "+want[i])
			i++
		default:
			lines = append(lines, "  + "+got[j])
			j++
		}
	}
	return strings.Join(lines, "\n")
}

func same(want, got string) bool { return want == got }
