// Package server opens a runtime to other languages, browsers and tools. It serves the HTTP API, its description,
// health checks and the events of runs as one http.Handler. [New] makes the handler for a mux of your own; [Serve] also
// listens, as the command serve does. Users read docs/server.md.
//
// A request passes guard.go (host, origin, token) and then its line in the table of routes.go. openapi.go describes the
// same table. A route's function takes a struct that is filled from the request (bind.go) and returns a reply
// (reply.go) of objects from docs/json.md. Errors are problems (problem.go).
package server
