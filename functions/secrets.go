package functions

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane/secrets"
	"github.com/runlane/runlane-go/core"
)

// SecretsVariable lists the secrets of each role: role=arn,arn with blanks between roles. [Start] reads those of its
// role by secrets.Read and sets their variables; [WithSecrets] does so elsewhere.
const SecretsVariable = "RUNLANE_SECRETS"

// secretsOf returns the ARNs of a role. A malformed entry or a missing role is an error: otherwise a program would run
// without its secrets unnoticed.
func secretsOf(role, text string) ([]string, error) {
	roles := map[string]string{}
	for entry := range strings.FieldsSeq(text) {
		name, list, ok := strings.Cut(entry, "=")
		_, twice := roles[name]
		if !ok || twice || !roleName.MatchString(name) || list != "" && !arns.MatchString(list) {
			return nil, secretsFault(fmt.Sprintf("%s has %q, no role with its secrets", SecretsVariable, entry))
		}
		roles[name] = list
	}
	list, there := roles[role]
	switch {
	case text != "" && !there:
		return nil, secretsFault(fmt.Sprintf("%s has no role %q", SecretsVariable, role))
	case list == "":
		return nil, nil
	}
	return strings.Split(list, ","), nil
}

var (
	roleName = regexp.MustCompile(`^[a-z]+$`)
	arns     = regexp.MustCompile(`^arn:[^,]+(,arn:[^,]+)*$`)
)

func secretsFault(message string) error {
	return &runlane.Error{
		Code:    runlane.ErrConfigurationInvalid,
		Message: message,
		Hint:    "write worker=ARN,ARN with a blank before the next role, and no quotes in the value",
	}
}

func (p *program) readSecrets(ctx context.Context) error {
	if p.informed {
		return nil
	}
	err := setSecrets(ctx, p.role)
	p.informed = err == nil
	return err
}

// WithSecrets returns an opener that first reads the secrets of a role from RUNLANE_SECRETS, once, and sets their
// variables, like [Start]. It is for programs outside Lambda, such as a worker in a container with the role "worker".
// Without the variable it reads nothing.
//
// Errors are open's, those of secrets.Read, and runlane.ErrConfigurationInvalid for a malformed list, a missing role,
// and a variable that is already set. After an error no variable is set, and the next call reads again. Safe for
// concurrent use.
func WithSecrets(role string, open Opener) Opener {
	p := &program{role: role}
	var mu sync.Mutex
	return func(ctx context.Context) (*core.Runtime, error) {
		mu.Lock()
		err := p.readSecrets(ctx)
		mu.Unlock()
		if err != nil {
			return nil, err
		}
		return open(ctx)
	}
}

func setSecrets(ctx context.Context, role string) error {
	list, err := secretsOf(role, os.Getenv(SecretsVariable))
	if err != nil || len(list) == 0 {
		return err
	}
	variables, err := secrets.Read(ctx, list)
	if err != nil {
		return err
	}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if _, twice := variables[name]; twice {
			return &runlane.Error{
				Code:    runlane.ErrConfigurationInvalid,
				Message: fmt.Sprintf("the variable %s is set, and a secret has it too", name),
				Hint:    "take it out of the function's or the container's configuration, or out of the secret",
			}
		}
	}
	for name, value := range variables {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}
