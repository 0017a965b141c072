// Package mcp lets language models work with runs: a server of the Model Context Protocol whose tools are operations of
// the HTTP API (package server), and whose resources are runs and their histories.
//
// A tool is a request to that API in the name of the caller. So scopes, limits, hidden payloads, the actor in events
// and the log of changes are the API's; results are its objects, of docs/json.md, and their schemas come from its
// description. Tools that change something exist only where [Options].Allow names them.
//
// It is a separate module, so that only programs which import it link the protocol's SDK. The program runlane does:
// "runlane mcp" speaks the protocol over standard input and output, "runlane serve" at /mcp. docs/server.md shows both.
package mcp
