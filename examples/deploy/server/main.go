// Command server is the bootstrap of the function of that name: the API and the console behind its URL.
package main

import (
	"example.org/orders/work"
	"github.com/runlane/runlane-go/functionurl"
)

func main() { functionurl.Start(work.Open, nil) }
