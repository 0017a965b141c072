package main

import (
	"strings"
	"testing"
)

// said is what machines print.
const said = `    model_test.go:49: reliability: lives lane=model sequences=20000 steps=251000
reliability: lives lane=dynamodb sequences=40 steps=610 failures=0 seed=7
    lives_test.go:131: reliability: lives lane=dynamodb fault lost answer=31
    lives_test.go:131: reliability: lives lane=dynamodb waits slot=2
reliability: fault lost answer=4
reliability: crash points tried=212 total=212 lost=0
    powerloss_test.go:156: reliability: power loss scenario=outbox points=60 outcomes=150 acknowledged=12 lost=0
    linear.go:136: slot count: seed 12, 164 operations, 18 of them with unknown outcome: linearizable
    linear.go:136: slot count: seed 12, 90 operations, 18 of them with unknown outcome: not linearizable
    answers_test.go:244: 1044 inputs tried
fuzz: FuzzCursors
fuzz: elapsed: 0s, execs: 1000 (24406/sec), new interesting: 4 (total: 458)
fuzz: elapsed: 1s, execs: 9000 (24406/sec), new interesting: 4 (total: 458)
fuzz: FuzzPayload
fuzz: elapsed: 1s, execs: 500 (24406/sec), new interesting: 4 (total: 458)
reliability: chaos triggered=300 finished=298 waiting=2 lost=0 excess=12 recovered=2.1s seed=5
mutation: without dedup by owner: 2 fail: TestCondition_A, TestScenarios_UnderFaults/b
reliability: load case="a payload of 350 KB" lane=memlane runs=1 of=1 seconds=0.1
`

func heard(text string) *report {
	r := newReport()
	for _, line := range strings.Split(text, "\n") {
		r.read(strings.TrimSpace(line))
	}
	return r
}

func TestReport_AddsUpWhatMachinesPrint(t *testing.T) {
	t.Parallel()
	r := heard(said)
	if r.steps["model"] != 251000 || r.steps["dynamodb"] != 610 || r.sequences["dynamodb"] != 40 {
		t.Errorf("lives: %v, %v", r.steps, r.sequences)
	}
	if r.faults["lost answer"] != 35 || r.waits["slot"] != 2 {
		t.Errorf("faults %v, waits %v", r.faults, r.waits)
	}
	if r.powerPoints != 60 || r.powerOutcomes != 150 {
		t.Errorf("losses of power: %d, %d", r.powerPoints, r.powerOutcomes)
	}
	if r.crashTried != 212 || r.histories != 1 || r.operations != 164 || r.inputs != 1044 || r.fuzzed+r.fuzzing != 9500 {
		t.Errorf("%+v", r)
	}
	if len(r.protections) != 1 || r.protections[0].name != "dedup by owner" ||
		strings.Join(r.protections[0].failed, " ") != "TestCondition_A TestScenarios_UnderFaults/b" {
		t.Errorf("protections: %+v", r.protections)
	}
	if r.triggered != 300 || r.excess != 12 || len(r.notes) != 2 {
		t.Errorf("%+v", r)
	}
	if err := r.verdict(true); err != nil {
		t.Error(err)
	}
}

func TestVerdict_WhateverMustNotBe_Fails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text   string
		change func(*report)
		says   string
	}{
		"a lost run":                       {said + "reliability: chaos triggered=9 finished=8 waiting=0 lost=1 excess=0", nil, "1 runs were lost"},
		"a run lost with the power":        {said + "reliability: power loss scenario=a points=1 outcomes=1 acknowledged=1 lost=2", nil, "2 runs were lost"},
		"an untried point":                 {said + "reliability: crash points tried=1 total=2 lost=0", nil, "213 of 214 crash points"},
		"a wait without a name":            {said + "reliability: waits =1", nil, "1 runs wait for nothing"},
		"a failed machine":                 {said, func(r *report) { r.ran("load", 0, []string{"TestLoad"}) }, "load: 1 failed"},
		"a protection that no test misses": {said + "mutation: without fencing: 0 fail: ", nil, `no test misses the protection "fencing"`},
		"an unmissed protection":           {said, func(r *report) { r.missed("fencing", nil) }, `no test misses the protection "fencing"`},
		"a silent machine":                 {strings.ReplaceAll(said, "chaos triggered", "chaos tried"), nil, "did not say what it did"},
	} {
		r := heard(c.text)
		if c.change != nil {
			c.change(r)
		}
		if err := r.verdict(true); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPrint_HasEveryCount(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := heard(said)
	r.ran("load", 0, nil)
	r.missed("fencing", []string{"A", "B", "C", "D", "E", "F", "G"})
	r.print(&out)
	for _, want := range []string{"251000", "212 of 212", "lost answer", "1044, 9500", "300, 298, 12", "a payload of 350 KB", "7 fail: A, B, C, D, E, F, and 1 more"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}
