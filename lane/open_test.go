package lane_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// scheme opens lanes that are named after what stands behind the colon.
func scheme(name, form string) lane.Scheme {
	return lane.Scheme{Name: name, Form: form, Open: func(_ context.Context, rest string) (*lane.Lane, error) {
		if rest == "bad" {
			return nil, errors.New("it is bad")
		}
		return &lane.Lane{Name: name + " " + rest}, nil
	}}
}

func TestOpen_GivesTheSchemeWhatFollowsItsColon(t *testing.T) {
	t.Setenv(lane.EnvironmentVariable, "prod")
	for name, want := range map[string]string{"a:": "a ", "a:b:c": "a b:c", "b:a": "b a"} {
		l, err := lane.Open(t.Context(), name, scheme("a", ""), scheme("b", "b:PATH"))
		if err != nil || l.Name != want || l.Environment != "prod" {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
}

func TestOpen_ALaneWithAnEnvironmentKeepsIt(t *testing.T) {
	t.Setenv(lane.EnvironmentVariable, "prod")
	l, err := lane.Open(t.Context(), "a:", lane.Scheme{Name: "a", Open: func(context.Context, string) (*lane.Lane, error) {
		return &lane.Lane{Environment: "test"}, nil
	}})
	if err != nil || l.Environment != "test" {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestOpen_WhatCannotBeOpened_ListsWhatCan(t *testing.T) {
	t.Setenv(lane.EnvironmentVariable, "")
	both := []lane.Scheme{scheme("a", ""), scheme("b", "b:PATH")}
	for name, tc := range map[string]struct {
		name    string
		schemes []lane.Scheme
		says    []string
	}{
		"no name":        {"", both, []string{"has no name", "this program knows a:, b:PATH"}},
		"another scheme": {"c:x", both, []string{`"c:x"`, "this program knows a:, b:PATH"}},
		"no colon":       {"a", both, []string{`"a"`, "this program knows a:, b:PATH"}},
		"no schemes":     {"a:", nil, []string{`"a:"`, "pass the schemes"}},
	} {
		l, err := lane.Open(t.Context(), tc.name, tc.schemes...)
		e, ok := errors.AsType[*runlane.Error](err)
		if l != nil || !ok || e.Code != runlane.ErrConfigurationInvalid {
			t.Errorf("%s: %v, %v", name, l, err)
			continue
		}
		for _, want := range tc.says {
			if !strings.Contains(e.Message+"; "+e.Hint, want) {
				t.Errorf("%s: %s; %s", name, e.Message, e.Hint)
			}
		}
	}
	if l, err := lane.Open(t.Context(), "a:bad", both...); l != nil || err == nil || err.Error() != "it is bad" {
		t.Errorf("%v, %v", l, err)
	}
}

func TestOpen_ABadEnvironment_IsRefused(t *testing.T) {
	t.Setenv(lane.EnvironmentVariable, "a:b")
	if l, err := lane.Open(t.Context(), "a:", scheme("a", "")); l != nil || runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Errorf("%v, %v", l, err)
	}
}
