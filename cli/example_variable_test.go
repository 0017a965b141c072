package cli_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/runlane/runlane-go/cli"
)

// Flags of every command can stand for variables that the program's opener reads.
func ExampleVariable() {
	var help strings.Builder
	code := cli.Run(context.Background(), open, &cli.Options{
		Name: "mailer", Args: []string{"--help"}, Stdout: &help,
		Variables: []cli.Variable{{Flag: "smtp", Name: "SMTP_URL", Usage: "URL of the mail server"}},
	})
	fmt.Println(code, strings.Contains(help.String(), "--smtp URL"))
	// Output: 0 true
}
