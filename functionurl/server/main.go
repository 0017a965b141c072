// Command server is the Lambda function of that name with the runtime of the example application: the API and the
// console behind a function URL. The other three functions are another program.
package main

import (
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/functionurl"
)

func main() { functionurl.Start(webhooks.Open, nil) }
