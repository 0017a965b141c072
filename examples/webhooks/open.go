package webhooks

import (
	"cmp"
	"context"
	"os"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// The application's environment variables, beside those of the lane.
const (
	// EndpointsVariable holds "name=url" pairs with commas between them.
	EndpointsVariable = "WEBHOOK_ENDPOINTS"
	// SecretVariable holds the secret of the signatures.
	SecretVariable = "WEBHOOK_SECRET"
)

// Open opens the application on the lane that RUNLANE_LANE names, "aws:" unless it is set, as configured by the
// environment. The same opener serves the Lambda functions, a worker in a container and the command line. What is
// missing or wrong is [runlane.ErrConfigurationInvalid]; so is a lane of another scheme than "aws:", because a program
// links what it lists: see [OpenOn].
func Open(ctx context.Context) (*core.Runtime, error) { return OpenOn(ctx) }

// OpenOn is Open for a program that links other schemes beside "aws:". The functions do not.
func OpenOn(ctx context.Context, others ...lane.Scheme) (*core.Runtime, error) {
	sender, err := senderFromEnv()
	if err != nil {
		return nil, err
	}
	schemes := append([]lane.Scheme{awslane.Scheme}, others...)
	l, err := lane.Open(ctx, cmp.Or(os.Getenv(lane.Variable), "aws:"), schemes...)
	if err != nil {
		return nil, err
	}
	return core.Open(ctx, l, &core.Options{Handlers: sender.Handlers()})
}

// Handlers are the tasks that a program with this sender can execute.
func (s *Sender) Handlers() []runlane.Handler {
	return []runlane.Handler{Deliver.Handle(s.Deliver), Check.Handle(check)} // the compiler checks the payload types
}

func senderFromEnv() (*Sender, error) {
	endpoints, err := ParseEndpoints(os.Getenv(EndpointsVariable))
	if err != nil {
		return nil, err
	}
	secret := os.Getenv(SecretVariable)
	if secret == "" {
		return nil, &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: SecretVariable + " is not set",
			Hint: "set it to the secret that the receivers verify signatures with",
		}
	}
	return &Sender{Client: NewClient(RequestTimeout), Endpoints: endpoints, Secret: []byte(secret)}, nil
}
