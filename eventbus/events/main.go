// Command events is the Lambda function that sends the ends of runs to an EventBridge bus. It opens no runtime, so that
// it is the same program for every application.
package main

import "github.com/runlane/runlane-go/eventbus"

func main() { eventbus.Start() }
