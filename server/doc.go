// Package server opens a runtime to other languages, browsers and tools: one http.Handler with the HTTP API, its
// description, health and the events of runs. [New] makes the handler, for a mux of your own; [Serve] also listens,
// which is what the command serve does. The user's document is docs/server.md.
//
// A request goes through guard.go (whose host, whose origin, whose token), then to its line in the table of routes.go,
// which is also what openapi.go describes. What a route reads from the request is the struct that its function takes
// (bind.go), and what it answers is a reply (reply.go), whose objects are those of docs/json.md. Errors are
// problems (problem.go).
package server
