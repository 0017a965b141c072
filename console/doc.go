// Package console shows the runs, queues and schedules of one environment in a browser, and lets operators change them.
//
// [New] makes a handler for server.Options.Root; the server authenticates callers and checks origins and scopes.
//
// Pages are HTML that works without scripts; a small script makes them live. Everything is embedded. docs/console.md
// describes the pages.
package console
