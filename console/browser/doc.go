// Package browser tests the console in a real browser: make test-console. It is a separate module for its dependencies.
package browser
