package core_test

import (
	"context"
	"fmt"
	"os"

	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// A program reads the keys of its answer tokens from RUNLANE_TOKEN_KEYS, which a secret sets.
func ExampleTokenKeysFromEnv() {
	_ = os.Setenv(core.TokenKeysVariable, "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=")
	defer os.Unsetenv(core.TokenKeysVariable)
	ctx := context.Background()
	keys, err := core.TokenKeysFromEnv()
	if err != nil {
		fmt.Println(err)
		return
	}
	rt, err := core.Open(ctx, memlane.New(), &core.Options{TokenKeys: keys})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close(ctx)
	fmt.Println(len(keys))
	// Output: 1
}
