package lane_test

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// One line chooses where runs are kept: RUNLANE_LANE does, with "mem:" where nothing is set. A program that also keeps
// them in a file or on AWS passes sqlitelane.Scheme and awslane.Scheme, too.
func ExampleOpen() {
	l, err := lane.Open(context.Background(), cmp.Or(os.Getenv(lane.Variable), "mem:"), memlane.Scheme)
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Name)
	_, err = lane.Open(context.Background(), "sqlite:state.db", memlane.Scheme)
	fmt.Println(err)
	// Output:
	// memlane
	// configuration_invalid: no lane is named "sqlite:state.db" (this program knows mem:)
}
