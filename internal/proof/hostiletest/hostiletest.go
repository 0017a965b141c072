// Package hostiletest holds what an attacker, or a broken program, may give to everything that reads: the
// inputs are here, and its tests give each of them to each reader and hold the exact answers in
// testdata/answers.golden. A second part plants marks into everything that is confidential and looks for them in logs,
// errors and metrics. A third is a table of handlers that return, panic, exit, block and call back as no handler
// should. A fourth has every field of every option struct refuse what is illegal, before anything is read or written.
//
// What is read from storage alone, like compressed payloads, has its hostile inputs beside the code that reads it.
package hostiletest

import (
	"strings"
)

// Input is a text and what is wrong with it.
type Input struct{ Name, Text string }

// Inputs are all of them. Where a reader takes JSON, the text is given as it is.
func Inputs() []Input {
	const depth = 1_000_000
	return []Input{
		{"nothing", ""},
		{"space alone", " \t\n"},
		{"a NUL byte", "\x00"},
		{"a NUL byte inside", "a\x00b"},
		{"an escape sequence of a terminal", "\x1b[2J\x1b]0;title\a"},
		{"two lines", "a\nlevel=ERROR msg=forged"},
		{"a right-to-left override", "run_\u202efdp.exe"},
		{"a right-to-left mark", "a\u200fb"},
		{"a joiner that cannot be seen", "a\u200db"},
		{"a byte order mark", "\ufeffa"},
		{"a line separator of Unicode", "a\u2028b"},
		{"no UTF-8", "a\xff\xfeb"},
		{"a lone surrogate in bytes", "a\xed\xa0\x80b"},
		{"a lone surrogate, escaped", `"\ud800"`},
		{"colons", "::::"},
		{"another's key", "default:run:run_1"},
		{"a path upwards", "../../etc/passwd"},
		{"quotes and a comment", `x" OR 1=1 --`},
		{"a huge text", strings.Repeat("x", depth)},
		{"a huge number", strings.Repeat("9", 1000)},
		{"a number beyond float64", "1e999"},
		{"a negative zero", "-0"},
		{"NaN", "NaN"},
		{"an expression that never ends", "*/0 * * * *"},
		{"a time that never comes", "0 0 31 2 *"},
		{"lists a million deep", strings.Repeat("[", depth) + strings.Repeat("]", depth)},
		{"objects a million deep", strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)},
		{"a list that does not end", "["},
		{
			"an object with a field twice",
			`{"v":1,"v":2,"task":"a","task":"b","type":"run.paused","type":"run.created"}`,
		},
		{"a field in another case", `{"V":1,"TASK":"a","Type":"run.created"}`},
		{"an object of the wrong types", `{"v":"1","task":7,"type":[],"payload":{},"data":1,"ttl":5,"N":"x"}`},
		{"a number that no field can hold", `{"N":1e999,"v":99999999999999999999,"task":"a","ttl":"99999999d"}`},
		{"text behind the value", `{"v":1} {"v":1}`},
		{"null", "null"},
		{"base64 of nothing", "e30"},
		{"base64 of an unknown cursor", "eyJoIjoiMDAiLCJwIjoiMSIsImMiOiIwMCJ9"},
	}
}
