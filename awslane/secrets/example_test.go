package secrets_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/runlane/runlane-go/awslane/secrets"
)

// A worker in a container reads the secrets that functions get by RUNLANE_SECRETS.
func ExampleRead() {
	variables, err := secrets.Read(context.Background(), strings.Fields(os.Getenv("SECRETS")))
	if err != nil {
		fmt.Println(err)
		return
	}
	for name, value := range variables {
		if err := os.Setenv(name, value); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(len(variables))
	// Output: 0
}
