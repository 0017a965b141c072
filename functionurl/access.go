package functionurl

import (
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdaurl"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/server"
)

// Access makes an Access for requests to a function URL, for [Start] or for server.Options beside another way to tell
// callers apart: it lets in whom IAM let in. The actor is the caller's principal, as account/kind/name:
// "123456789012/user/ada", and "123456789012/assumed-role/admin/ada" for the session ada of the role admin. All have
// the same scopes; without any of them a caller may do nothing.
//
// What has no principal is server.ErrUnauthenticated. So is a principal that is no ARN of a caller.
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

// callerOf names the principal that IAM let in.
func callerOf(event *events.LambdaFunctionURLRequest) (name string, ok bool) {
	authorizer := event.RequestContext.Authorizer
	if authorizer == nil || authorizer.IAM == nil {
		return "", false
	}
	// arn:partition:service:region:account:kind/name, without a region for callers.
	part := strings.SplitN(authorizer.IAM.UserARN, ":", 6)
	if len(part) != 6 || part[0] != "arn" || part[2] != "iam" && part[2] != "sts" || part[3] != "" || part[4] == "" {
		return "", false
	}
	name = part[4] + "/" + part[5]
	return name, runlane.RunID(name).Validate() == nil // the rules of ids hold for actors too
}
