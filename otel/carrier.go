package runlaneotel

import (
	"maps"
	"slices"
	"strings"
)

// carrierOf reads a run's carrier. The case of a name does not count: callers copy headers.
type carrierOf map[string]string

func (c carrierOf) Get(key string) string {
	if value, ok := c[key]; ok {
		return value
	}
	for name, value := range c {
		if strings.EqualFold(name, key) {
			return value
		}
	}
	return ""
}

// Set is not called: a carrier is read.
func (carrierOf) Set(string, string) {}

func (c carrierOf) Keys() []string { return slices.Collect(maps.Keys(c)) }
