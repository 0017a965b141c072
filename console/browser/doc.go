// Package browser looks at the console in a real browser, and acts as a person does: make test-console. It is a module
// of its needs, which programs with a console do not have.
package browser
