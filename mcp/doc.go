// Package mcp lets language models work with runs. It is a server of the Model Context Protocol; its tools are
// operations of the HTTP API (package server), and its resources are runs and their histories.
//
// A tool sends a request to that API for its caller. So the API enforces scopes, limits and hidden payloads, and logs
// changes with their actor. Results are objects of docs/json.md. Tools that change something exist only if
// [Options].Allow names them.
//
// It is a separate module, so that only programs that import it link the protocol's SDK. "runlane mcp" serves over
// standard input and output, "runlane serve" at /mcp. docs/server.md describes both.
package mcp
