package functionurl

import (
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdaurl"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/server"
)

// Access returns an Access for requests to a function URL, for [Start] or, with other kinds of authentication, for
// server.Options. It admits every caller that IAM admitted. The actor is the caller's principal, as account/kind/name:
// "123456789012/user/ada", or "123456789012/assumed-role/admin/ada" for the session ada of the role admin. All callers
// have the same scopes; without any a caller may do nothing.
//
// A request without a principal, or with one that is no caller's ARN, is server.ErrUnauthenticated.
func Access(scopes ...server.Scope) func(*http.Request) (server.Access, error) {
	return func(r *http.Request) (server.Access, error) {
		event, ok := lambdaurl.RequestFromContext(r.Context())
		if !ok {
			return server.Access{}, server.ErrUnauthenticated
		}
		name, ok := callerOf(event)
		if !ok {
			return server.Access{}, server.ErrUnauthenticated
		}
		return server.Access{Actor: runlane.Actor{Type: runlane.ActorOperator, ID: name}, Scopes: scopes}, nil
	}
}

func callerOf(event *events.LambdaFunctionURLRequest) (name string, ok bool) {
	authorizer := event.RequestContext.Authorizer
	if authorizer == nil || authorizer.IAM == nil {
		return "", false
	}
	// arn:partition:service:region:account:kind/name; callers have no region.
	part := strings.SplitN(authorizer.IAM.UserARN, ":", 6)
	if len(part) != 6 || part[0] != "arn" || part[2] != "iam" && part[2] != "sts" || part[3] != "" || part[4] == "" {
		return "", false
	}
	name = part[4] + "/" + part[5]
	return name, runlane.RunID(name).Validate() == nil // the rules of IDs apply to actors too
}
