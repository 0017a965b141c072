package core_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

const (
	keyOfA = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="
	keyOfB = "YmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmI="
)

func TestTokenKeysFromEnv(t *testing.T) {
	a, b := strings.Repeat("a", 32), strings.Repeat("b", 32)
	for name, tc := range map[string]struct {
		text, fault string
		want        []string
	}{
		"unset":             {},
		"one":               {text: keyOfA, want: []string{a}},
		"commas":            {text: keyOfB + "," + keyOfA, want: []string{b, a}},
		"lines":             {text: "\n" + keyOfA + "\r\n" + keyOfB + "\n", want: []string{a, b}},
		"no base64":         {text: keyOfA + ",very-secret!", fault: "key 2 of RUNLANE_TOKEN_KEYS is not base64"},
		"a short key":       {text: "dmVyeS1zZWNyZXQ=", fault: "key 1 of RUNLANE_TOKEN_KEYS has 11 bytes"},
		"a name and a key":  {text: "2026=" + keyOfA, fault: "is not base64"},
		"nothing but marks": {text: " ,\n, "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(core.TokenKeysVariable, tc.text)
			got, err := core.TokenKeysFromEnv()
			if tc.fault != "" {
				if !errors.Is(err, runlane.ErrConfigurationInvalid) || !strings.Contains(err.Error(), tc.fault) {
					t.Errorf("error is %v", err)
				}
				if strings.Contains(err.Error(), "very-secret") || strings.Contains(err.Error(), tc.text) {
					t.Errorf("the error quotes a key: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(tc.want) {
				t.Fatalf("%d keys", len(got))
			}
			for i := range got {
				if string(got[i]) != tc.want[i] {
					t.Errorf("key %d is %q", i+1, got[i])
				}
			}
		})
	}
}
