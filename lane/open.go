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
	// Variable names the lane: "mem:", "sqlite:state.db", "aws:". [Open] does not read it, its callers do:
	//
	//	lane.Open(ctx, cmp.Or(os.Getenv(lane.Variable), "sqlite:shop.db"), sqlitelane.Scheme, awslane.Scheme)
	Variable = "RUNLANE_LANE"
	// EnvironmentVariable names the environment of a lane that [Open] opens. Unset means runlane.DefaultEnvironment.
	EnvironmentVariable = "RUNLANE_ENV"
)

// Scheme opens the lanes whose names begin with its own name and a colon. Adapters export one: memlane.Scheme,
// sqlitelane.Scheme, awslane.Scheme. A program passes those that it wants to link.
type Scheme struct {
	// Name is what stands before the colon, without it.
	Name string
	// Form shows the names that Open takes, for errors: "sqlite:PATH". "" means Name and the colon.
	Form string
	// Open opens a lane by what follows the colon. It need not set [Lane].Environment.
	Open func(ctx context.Context, rest string) (*Lane, error)
}

// form is what a user can write.
func (s *Scheme) form() string {
	if s.Form != "" {
		return s.Form
	}
	return s.Name + ":"
}

// Open opens a lane by its name, a scheme's name with a colon and what that scheme makes of the rest: "mem:",
// "sqlite:state.db", "aws:". A lane that its scheme gave no environment has that of RUNLANE_ENV.
//
// An empty name, one of a scheme that is not among schemes, and a bad RUNLANE_ENV are runlane.ErrConfigurationInvalid;
// the hint lists the schemes that there are. Other errors are the scheme's. Safe for concurrent use.
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
		if err := l.fromEnvironment(); err != nil {
			return nil, err
		}
		return l, nil
	}
	return nil, unknown(name, schemes)
}

// fromEnvironment gives a lane without an environment that of the variable.
func (l *Lane) fromEnvironment() error {
	if l.Environment != "" {
		return nil
	}
	environment := runlane.Environment(os.Getenv(EnvironmentVariable))
	if err := environment.Validate(); err != nil {
		return &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: EnvironmentVariable + " is no environment name",
			Hint:    "use printable text without ':', or leave it unset for " + string(runlane.DefaultEnvironment),
			Cause:   err,
		}
	}
	l.Environment = environment
	return nil
}

// unknown says which names there are.
func unknown(name string, schemes []Scheme) error {
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
