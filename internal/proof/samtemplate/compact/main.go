// Command compact writes a template as JSON without blanks, for what takes templates as text. Usage: compact INPUT
// OUTPUT
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/runlane/runlane-go/internal/proof/samtemplate"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compact:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: compact INPUT OUTPUT")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	compact, err := samtemplate.Compact(text)
	if err != nil {
		return err
	}
	if len(compact) >= samtemplate.InlineLimit {
		return fmt.Errorf(
			"the template has %d bytes, and CloudFormation takes less than %d as text",
			len(compact),
			samtemplate.InlineLimit,
		)
	}
	if err := os.MkdirAll(filepath.Dir(args[1]), 0o750); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "compact: %s has %d bytes\n", args[1], len(compact))
	return os.WriteFile(args[1], compact, 0o600)
}
