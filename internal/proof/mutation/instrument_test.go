package main

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

const source = `package dynamostore

var absent = condition{text: "attribute_not_exists(#pk)"}

func equal(name string) condition { return condition{text: name} }

func (c condition) and(o condition) condition { c.text += o.text; return c }

func one(table string) condition {
	put(member{condition: absent})
	held := equal("a").and(equal("b"))
	mine := condition{text: "c", values: nil}
	mine.text += " AND d"
	update(condition{})
	send(&Input{ConditionExpression: aws.String("e"), Other: aws.String("f")})
	send(&Input{ConditionExpression: aws.String(held.text)})
	send(&Input{ConditionExpression: &held.text})
	return held
}
`

func TestRewrite_PutsEveryConditionBehindASwitch(t *testing.T) {
	t.Parallel()
	changed, sites, err := rewrite("x.go", []byte(source), 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"put(member{condition: mutated(11, absent)})",
		`held := mutated(12, equal("a")).and(mutated(13, equal("b")))`,
		`mine := mutated(14, condition{text: "c", values: nil})`,
		`mine.text += mutatedText(15, " AND d")`,
		"update(condition{})",
		`ConditionExpression: aws.String(mutatedText(16, "e")), Other: aws.String("f")`,
		"aws.String(held.text)",
		"&held.text",
		`func equal(name string) condition { return condition{text: name} }`,
		`c.text += o.text;`,
	} {
		if !strings.Contains(string(changed), want) {
			t.Errorf("no %s in\n%s", want, changed)
		}
	}
	if len(sites) != 6 || sites[0].place != "x.go:10" || sites[0].name() != "one: absent" || sites[5].text != `"e"` {
		t.Errorf("%+v", sites)
	}
	if _, err := parser.ParseFile(token.NewFileSet(), "x.go", changed, 0); err != nil {
		t.Error(err)
	}
}

func TestSwitches_AreGo(t *testing.T) {
	t.Parallel()
	if _, err := parser.ParseFile(token.NewFileSet(), "switches.go", switches, 0); err != nil {
		t.Error(err)
	}
}

func TestReport_FailsForSurvivorsAndForDeadExplanations(t *testing.T) {
	t.Parallel()
	killed, survivor := &site{function: "f", text: "absent", killedBy: "^TestA$"}, &site{function: "g", text: "absent"}
	if err := report([]*site{killed}, false, 0); err != nil {
		t.Error(err)
	}
	if err := report([]*site{killed, survivor}, false, 0); err == nil {
		t.Error("a survivor is no failure")
	}
}
