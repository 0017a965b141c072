package main

import (
	"fmt"
	"slices"
	"strings"
)

// row is one figure of one subject over all rounds.
type row struct {
	Kind   string  `json:"kind"` // "row"
	Name   string  `json:"name"`
	Group  group   `json:"group"`
	Metric metric  `json:"metric"`
	Unit   string  `json:"unit"`
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Rounds int     `json:"rounds"`
	// OfBest is the median beside the best median of the group, as a fraction of the speed: 1 is the best one itself.
	OfBest float64 `json:"of_best"`
	// OfRunlane is the same beside Runlane's own row of the group: above 1 the peer wins. 0 where the group has none.
	OfRunlane float64 `json:"of_runlane,omitempty"`
}

// median of sorted values, at least one.
func median(sorted []float64) float64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// summarize makes the rows, in the order of groups, metrics and subjects. figures has one map for each round of a
// subject.
func summarize(subjects []*subject, figures map[*subject][]map[metric]float64) []row {
	var rows []row
	for _, g := range groups {
		for _, m := range metrics {
			begin := len(rows)
			for _, s := range subjects {
				if s.group != g.group {
					continue
				}
				var values []float64
				for _, round := range figures[s] {
					if value, ok := round[m.metric]; ok {
						values = append(values, value)
					}
				}
				if len(values) == 0 {
					continue
				}
				slices.Sort(values)
				rows = append(rows, row{
					Kind: "row", Name: s.name, Group: g.group, Metric: m.metric, Unit: m.unit, Rounds: len(values),
					Median: median(values), Low: values[0], High: values[len(values)-1],
				})
			}
			compare(rows[begin:], m.less)
		}
	}
	return rows
}

// compare sets the ratios of the rows of one metric in one group.
func compare(rows []row, less bool) {
	if len(rows) == 0 {
		return
	}
	faster := func(a, b row) float64 { // how many times as fast a is as b
		if less {
			return b.Median / a.Median
		}
		return a.Median / b.Median
	}
	best, own := rows[0], slices.IndexFunc(rows, func(r row) bool { return isRunlane(r.Name) })
	for _, r := range rows {
		if faster(r, best) > 1 {
			best = r
		}
	}
	for i, r := range rows {
		rows[i].OfBest = faster(r, best)
		if own >= 0 {
			rows[i].OfRunlane = faster(r, rows[own])
		}
	}
}

// verdicts say in words where a peer wins, and by how much.
func verdicts(rows []row) []string {
	var said []string
	for _, g := range groups {
		if g.group == emulated {
			continue
		}
		var fastest []string
		for _, m := range metrics {
			best, beside := verdict(rows, g.group, m.metric)
			switch {
			case len(beside) > 0:
				own := ownName(rows, g.group)
				said = append(
					said,
					fmt.Sprintf("%s, %s: beside %s, %s", g.group, m.metric, own, strings.Join(beside, "; ")),
				)
			case best != "" && !isRunlane(best):
				fastest = append(fastest, fmt.Sprintf("%s in %s", best, m.metric))
			}
		}
		if len(fastest) > 0 {
			said = append(
				said,
				fmt.Sprintf("%s: no row of Runlane; fastest are %s", g.group, strings.Join(fastest, ", ")),
			)
		}
	}
	return said
}

// verdict is who is best in one metric of a group, and how each peer compares with Runlane where that has a row.
func verdict(rows []row, g group, m metric) (best string, beside []string) {
	for _, r := range rows {
		if r.Group != g || r.Metric != m {
			continue
		}
		if r.OfBest == 1 {
			best = r.Name
		}
		switch {
		case isRunlane(r.Name) || r.OfRunlane == 0:
		case r.OfRunlane > 1:
			beside = append(beside, fmt.Sprintf("%s wins, %s times as fast", r.Name, number(r.OfRunlane)))
		default:
			beside = append(beside, fmt.Sprintf("%s loses, %s times as fast", r.Name, number(r.OfRunlane)))
		}
	}
	return best, beside
}

// isRunlane tells Runlane's own subjects from its peers.
func isRunlane(name string) bool { return name == memlaneName || name == fileName || name == awsName }

// ownName is Runlane's subject in a group.
func ownName(rows []row, g group) string {
	for _, r := range rows {
		if r.Group == g && isRunlane(r.Name) {
			return r.Name
		}
	}
	return ""
}
