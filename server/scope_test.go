package server_test

import (
	"net/http"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/server"
)

// byScope lets callers in with the scopes of the header Scopes, all of them without one.
func byScope(r *http.Request) (server.Access, error) {
	caller := server.Access{Actor: runlane.Actor{Type: runlane.ActorOperator, ID: "ada"}, Scopes: server.Scopes()}
	if given := r.Header.Values("Scopes"); given != nil {
		caller.Scopes = nil
		for _, scope := range given {
			caller.Scopes = append(caller.Scopes, server.Scope(scope))
		}
	}
	return caller, nil
}

// without are headers for byScope, of these scopes but one.
func without(scopes []server.Scope, but server.Scope) []string {
	headers := []string{"Scopes: "}
	for _, scope := range scopes {
		if scope != but {
			headers = append(headers, "Scopes: "+string(scope))
		}
	}
	return headers
}
