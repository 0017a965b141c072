package lane

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/runlane/runlane-go"
)

// The environment variables that choose a lane, for programs and for the command line.
const (
	// Variable names the lane: "mem:", "sqlite:state.db", "aws:". Callers of [Open] read it:
	//
	//	lane.Open(ctx, cmp.Or(os.Getenv(lane.Variable), "sqlite:shop.db"), sqlitelane.Scheme, awslane.Scheme)
	Variable = "RUNLANE_LANE"
	// EnvironmentVariable names the environment of a lane from [Open]. Unset means runlane.DefaultEnvironment.
	EnvironmentVariable = "RUNLANE_ENV"
)

// Scheme opens the lanes with names that start with its own name and a colon. Adapters export one: memlane.Scheme,
// sqlitelane.Scheme, awslane.Scheme. A program passes the ones to link.
type Scheme struct {
	// Name without the colon.
	Name string
	// Form shows the names that Open accepts, for errors: "sqlite:PATH". "" means Name and the colon.
	Form string
	// Open opens a lane by the text after the colon. It need not set [Lane].Environment.
	Open func(ctx context.Context, rest string) (*Lane, error)
}

func (s *Scheme) form() string {
	if s.Form != "" {
		return s.Form
	}
	return s.Name + ":"
}

// Open opens a lane by its name, a scheme's name with a colon and a text for that scheme: "mem:", "sqlite:state.db",
// "aws:". If the scheme sets no environment, RUNLANE_ENV does.
//
// An empty name, an unknown scheme and a bad RUNLANE_ENV are runlane.ErrConfigurationInvalid; the hint lists the
// schemes. Other errors come from the scheme. Safe for concurrent use.
func Open(ctx context.Context, name string, schemes ...Scheme) (*Lane, error) {
	scheme, rest, _ := strings.Cut(name, ":")
	for _, s := range schemes {
		if s.Name != scheme || scheme == name {
			continue
		}
		l, err := s.Open(ctx, rest)
		if err != nil {
			return nil, err
		}
		if err := l.setEnvironment(); err != nil {
			return nil, err
		}
		return l, nil
	}
	return nil, unknownLane(name, schemes)
}

// setEnvironment sets a missing environment from the variable.
func (l *Lane) setEnvironment() error {
	if l.Environment != "" {
		return nil
	}
	environment := runlane.Environment(os.Getenv(EnvironmentVariable))
	if err := environment.Validate(); err != nil {
		return &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: EnvironmentVariable + " is not a valid environment name",
			Hint:    "use printable text without ':', or leave it unset for " + string(runlane.DefaultEnvironment),
			Cause:   err,
		}
	}
	l.Environment = environment
	return nil
}

// unknownLane lists the known names.
func unknownLane(name string, schemes []Scheme) error {
	forms := make([]string, len(schemes))
	for i := range schemes {
		forms[i] = schemes[i].form()
	}
	hint := "this program knows " + strings.Join(forms, ", ")
	if len(forms) == 0 {
		hint = "pass the schemes of the program's lanes to lane.Open"
	}
	if name == "" {
		return invalid("the lane has no name", hint)
	}
	return invalid(fmt.Sprintf("no lane is named %q", name), hint)
}
