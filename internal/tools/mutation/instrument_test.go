package main

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

const source = `package rows

import "x/item"

func one(table string) item.Condition {
	put(item.Write{Condition: item.Absent})
	held := item.Equal("a").And(item.Equal("b"))
	mine := item.Condition{Text: "c", Values: nil}
	mine.Text += " AND d"
	update(item.Condition{})
	send(&Input{ConditionExpression: aws.String("e"), Other: aws.String("f")})
	send(&Input{ConditionExpression: aws.String(held.Text)})
	send(&Input{ConditionExpression: &held.Text})
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
		"put(item.Write{Condition: item.Mutated(11, item.Absent)})",
		`held := item.Mutated(12, item.Equal("a")).And(item.Mutated(13, item.Equal("b")))`,
		`mine := item.Mutated(14, item.Condition{Text: "c", Values: nil})`,
		`mine.Text += item.MutatedText(15, " AND d")`,
		"update(item.Condition{})",
		`ConditionExpression: aws.String(item.MutatedText(16, "e")), Other: aws.String("f")`,
		"aws.String(held.Text)",
		"&held.Text",
	} {
		if !strings.Contains(string(changed), want) {
			t.Errorf("no %s in\n%s", want, changed)
		}
	}
	if len(sites) != 6 || sites[0].place != "x.go:6" || sites[0].name() != "one: item.Absent" || sites[5].text != `"e"` {
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
	killed, survivor := &removal{function: "f", text: "absent", missedBy: []string{"TestA"}}, &removal{function: "g", text: "absent"}
	if err := report([]*removal{killed}, false, 0); err != nil {
		t.Error(err)
	}
	if err := report([]*removal{killed, survivor}, false, 0); err == nil {
		t.Error("a survivor is no failure")
	}
}
