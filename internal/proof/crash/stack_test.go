package crash_test

import (
	"path"
	"regexp"
	"strconv"
	"strings"
)

// frame is one function of the product on a stack.
type frame struct {
	Name string `json:"n"` // without the module, closures counted as the function that they stand in
	File string `json:"f"` // relative to the module
	Line int    `json:"l"`
	// Ancestor: of a goroutine that made this one. Its line is where it goes on, which may be the next.
	Ancestor bool `json:"a,omitempty"`
}

// closures are the endings of the names that the compiler gives to functions without one.
var closures = regexp.MustCompile(`(\.func\d+|\.\d+|\.gowrap\d+|\.deferwrap\d+|-range\d+|-fm)+$`)

// parseStack reads the text of debug.Stack, ancestors included (GODEBUG=tracebackancestors), and returns the product's frames, the
// innermost first.
func parseStack(text, root string) []frame {
	var frames []frame
	ancestor := false
	lines := strings.Split(text, "\n")
	for i := 0; i+1 < len(lines); i++ {
		ancestor = ancestor || strings.HasPrefix(lines[i], "[originating from goroutine ")
		place, ok := strings.CutPrefix(lines[i+1], "\t")
		if !ok {
			continue
		}
		name := lines[i]
		i++
		if strings.HasPrefix(name, "created by ") || !strings.HasPrefix(name, module) {
			continue // where a goroutine was made is the first frame of its ancestor, too
		}
		place, _, _ = strings.Cut(place, " +0x")
		file, line, _ := strings.Cut(strings.TrimPrefix(place, root+"/"), ":")
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "internal/proof/") {
			continue
		}
		f := frame{Name: functionName(name), File: file, Ancestor: ancestor}
		f.Line, _ = strconv.Atoi(line)
		frames = append(frames, f)
	}
	return frames
}

// functionName is the declared function of a line like module/core.(*tick).each.func1(0x1, ...).
func functionName(line string) string {
	if at := strings.LastIndexByte(line, '('); at > 0 {
		line = line[:at]
	}
	return closures.ReplaceAllString(shortName(line), "")
}

// chain is the point's name: the functions from the outermost on.
func chain(frames []frame) string {
	var names []string
	for _, f := range frames {
		if len(names) == 0 || names[len(names)-1] != f.Name {
			names = append(names, f.Name)
		}
	}
	var text strings.Builder
	for i := len(names) - 1; i >= 0; i-- {
		text.WriteString(names[i])
		if i > 0 {
			text.WriteString(" > ")
		}
	}
	return text.String()
}

// reached are the names of the sites on one stack. The innermost frame called the operation.
func reached(sites map[string][]site, frames []frame, operation string) []string {
	var names []string
	callee := operation
	for _, f := range frames {
		var found *site
		for i := range sites[f.File] {
			s := &sites[f.File][i]
			if s.callee == callee && f.isAt(s) && (found == nil || f.nearer(s, found)) {
				found = s
			}
		}
		if found != nil {
			names = append(names, found.name)
		}
		callee = strings.TrimPrefix(path.Ext(f.Name), ".")
	}
	return names
}

// isAt reports whether the frame may be that of the site's caller, at the site.
func (f *frame) isAt(s *site) bool {
	if f.Ancestor {
		return strings.HasPrefix(s.name, f.Name+" > ")
	}
	return s.first <= f.Line && f.Line <= s.last
}

// nearer tells which of two sites it is: the inner one, or of an ancestor the one that is nearest.
func (f *frame) nearer(s, than *site) bool {
	if f.Ancestor {
		return max(f.Line-s.last, s.first-f.Line, 0) < max(f.Line-than.last, than.first-f.Line, 0)
	}
	return s.last-s.first < than.last-than.first
}
