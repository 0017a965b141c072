package webhooks

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/runlane/runlane-go"
)

// Endpoints finds the URL of a named endpoint. It is asked at every attempt, so a run that waits goes to where the
// endpoint is by then. An unknown name is an error, best [runlane.ErrConfigurationInvalid].
type Endpoints func(name string) (url string, err error)

// ParseEndpoints reads "name=url" pairs with commas between them. Mistakes are [runlane.ErrConfigurationInvalid];
// errors never show a URL, which may hold credentials.
func ParseEndpoints(text string) (Endpoints, error) {
	urls := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, address, _ := strings.Cut(strings.TrimSpace(pair), "=")
		parsed, err := url.Parse(address)
		if name == "" || err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
			return nil, badEndpoints(fmt.Sprintf("endpoint %q has no http or https URL", name))
		}
		if _, twice := urls[name]; twice {
			return nil, badEndpoints(fmt.Sprintf("endpoint %q is named twice", name))
		}
		urls[name] = address
	}
	return func(name string) (string, error) {
		address, ok := urls[name]
		if !ok {
			return "", badEndpoints(fmt.Sprintf("endpoint %q is not configured", name))
		}
		return address, nil
	}, nil
}

func badEndpoints(message string) error {
	return &runlane.Error{
		Code: runlane.ErrConfigurationInvalid, Message: message,
		Hint: "set " + EndpointsVariable + " to name=url pairs with commas between them",
	}
}
