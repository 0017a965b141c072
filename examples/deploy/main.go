// Command deploy is the bootstrap of bridge, relay and tick: which of them a process is, RUNLANE_FUNCTION says.
package main

import (
	"example.org/orders/work"
	"github.com/runlane/runlane-go/functions"
)

func main() { functions.Start(work.Open) }
