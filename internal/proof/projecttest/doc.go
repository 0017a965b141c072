// Package projecttest holds the tests about the project itself: what may import what, that exported names are
// documented and closed vocabularies are not changed by accident, that links lead somewhere, and that the commands
// people type and those that CI runs are the same. It has no code but tests.
package projecttest
