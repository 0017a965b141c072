package functions

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane/secrets"
)

// SecretsVariable names the secrets of each role: role=arn,arn with blanks between roles. [Start] reads those of its
// role, as secrets.Read does, and sets their variables before it calls the opener.
const SecretsVariable = "RUNLANE_SECRETS"

// secretsOf returns the ARNs that a role has.
func secretsOf(role, text string) []string {
	for entry := range strings.FieldsSeq(text) {
		if name, list, _ := strings.Cut(entry, "="); name == role && list != "" {
			return strings.Split(list, ",")
		}
	}
	return nil
}

// readSecrets sets the variables that secrets hold. One that the function's configuration sets too is an error: which
// of the two counts would be a guess.
func (p *program) readSecrets(ctx context.Context) error {
	arns := secretsOf(p.role, os.Getenv(SecretsVariable))
	if p.informed || len(arns) == 0 {
		return nil
	}
	variables, err := secrets.Read(ctx, arns)
	if err != nil {
		return err
	}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if _, twice := variables[name]; twice {
			return &runlane.Error{
				Code:    runlane.ErrConfigurationInvalid,
				Message: fmt.Sprintf("the variable %s is set, and a secret has it too", name),
				Hint:    "take it out of the function's configuration, or out of the secret",
			}
		}
	}
	for name, value := range variables {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	p.informed = true
	return nil
}
