package webhooks

import (
	"errors"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
)

func TestParseEndpoints(t *testing.T) {
	t.Parallel()
	endpoints, err := ParseEndpoints("main=https://example.com/hooks?a=b, local=http://127.0.0.1:8080,")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"main": "https://example.com/hooks?a=b", "local": "http://127.0.0.1:8080"} {
		if got, err := endpoints(name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	_, err = endpoints("other")
	if e, ok := errors.AsType[*runlane.Error](err); !ok || e.Code != runlane.ErrConfigurationInvalid || e.Hint == "" || !strings.Contains(e.Message, "other") {
		t.Errorf("unknown name: %v", err)
	}
}

func TestParseEndpoints_Mistakes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"main", "=http://h", "main=h", "main=/path", "main=ftp://user:hidden@h", "main=http://hidden\x7f", "main=http://", "a=http://h,a=http://hidden",
	} {
		_, err := ParseEndpoints(text)
		if !errors.Is(err, runlane.ErrConfigurationInvalid) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestOpen_MissingConfigurationIsNamed(t *testing.T) {
	for name, set := range map[string][2]string{
		SecretVariable:    {"main=http://127.0.0.1:1", ""},
		EndpointsVariable: {"nonsense", "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(EndpointsVariable, set[0])
			t.Setenv(SecretVariable, set[1])
			_, err := Open(t.Context())
			if e, ok := errors.AsType[*runlane.Error](err); !ok || e.Code != runlane.ErrConfigurationInvalid || !strings.Contains(e.Error(), name) {
				t.Errorf("got %v", err)
			}
		})
	}
}
