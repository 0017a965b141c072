// Package console shows the runs, queues and schedules of one environment in a browser, and does what operators do.
//
// [New] makes a handler for server.Options.Root: the server judges who calls, from where, and what they may do, and the
// console is pages beside its API:
//
//	handler, err := server.New(rt, &server.Options{Access: access, Root: console.New(rt, nil)})
//
// Pages are HTML that works without scripts; a script of some hundred lines makes them live. Nothing is loaded from
// elsewhere, and nothing has to be built. docs/console.md has the pages.
package console
