package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// recorded names the newest recording of internal/proof/formats among the files of a checkout, with its sum.
func recorded(files []file) (name, sum string, err error) {
	all := recordingsOf(files)
	if len(all) == 0 {
		return "", "", errors.New("no recording is there: " + recordings)
	}
	newest := all[len(all)-1]
	return newest.name, newest.sum, nil
}

type recording struct{ name, sum string }

// recordingsOf lists the recordings among the files of a checkout, the oldest first.
func recordingsOf(files []file) []recording {
	texts := map[string][]file{}
	for _, f := range files {
		if below, found := strings.CutPrefix(f.name, recordings+"/"); found && strings.Contains(below, "/") {
			texts[path.Dir(below)] = append(texts[path.Dir(below)], f)
		}
	}
	var all []recording
	for name, parts := range texts {
		slices.SortFunc(parts, func(a, b file) int { return cmp.Compare(a.name, b.name) })
		whole := sha256.New()
		for _, part := range parts {
			fmt.Fprintf(whole, "%s %d\n%s", path.Base(part.name), len(part.text), part.text)
		}
		all = append(all, recording{name, hex.EncodeToString(whole.Sum(nil))})
	}
	slices.SortFunc(all, func(a, b recording) int { return slices.Compare(numbers(a.name), numbers(b.name)) })
	return all
}

// numbers are those of a recording's name: 1.2 is before 1.10.
func numbers(name string) (all []int) {
	for part := range strings.SplitSeq(name, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil // a folder of another name is older than all
		}
		all = append(all, n)
	}
	return all
}
