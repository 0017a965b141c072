// Command relay is the Lambda function of that name with the tasks of the example application. The deployment template
// sets its role in RUNLANE_FUNCTION: the three functions are one program.
package main

import (
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/functions"
)

func main() { functions.Start(webhooks.Open) }
