package runlane_test

import (
	"fmt"

	"github.com/runlane/runlane-go"
)

// A queue may bound the starts of its runs by a rate: here for each tenant of an API, by the concurrency key.
func ExampleQueue_rate() {
	queue := runlane.Queue{Name: "tenant-api", Rate: runlane.PerMinute(600), Burst: 50}
	fmt.Println(queue.Rate, queue.Validate())
	fmt.Println(runlane.PerSecond(5), runlane.PerHour(1000))
	var rate runlane.Rate
	err := rate.UnmarshalText([]byte("10/90s"))
	fmt.Println(rate, err)
	// Output:
	// 600/min <nil>
	// 5/s 1000/h
	// 10/1m30s <nil>
}
