package awslane

import (
	"fmt"
	"strings"

	"github.com/runlane/runlane-go"
)

// ParseQueues parses the value of RUNLANE_QUEUES: comma-separated "name=url" pairs, with white space around them and a
// comma at the end allowed. Any other text, and an empty one, is runlane.ErrConfigurationInvalid. sqstransport.New
// checks the URLs.
func ParseQueues(text string) (map[runlane.QueueName]string, error) {
	const hint = "set it to name=url pairs with commas between them, like " +
		"emails=https://sqs.eu-west-1.amazonaws.com/123456789012/emails"
	if strings.TrimSpace(text) == "" {
		return nil, invalid(QueuesVariable+" is not set", hint)
	}
	queues := map[runlane.QueueName]string{}
	pairs := strings.Split(text, ",")
	if strings.TrimSpace(pairs[len(pairs)-1]) == "" {
		pairs = pairs[:len(pairs)-1]
	}
	for i, pair := range pairs {
		name, url, found := strings.Cut(pair, "=")
		queue := runlane.QueueName(strings.TrimSpace(name))
		url = strings.TrimSpace(url)
		// The errors do not quote the pair: a URL may have credentials in it.
		switch {
		case !found:
			return nil, invalid(fmt.Sprintf("%s has no '=' in pair %d", QueuesVariable, i+1), hint)
		case queue.Validate() != nil:
			return nil, invalid(fmt.Sprintf("%s has a bad queue name in pair %d", QueuesVariable, i+1), hint)
		case url == "":
			return nil, invalid(fmt.Sprintf("%s has no URL for queue %q", QueuesVariable, queue), hint)
		case queues[queue] != "":
			return nil, invalid(fmt.Sprintf("%s names queue %q twice", QueuesVariable, queue), "bind each queue once")
		}
		queues[queue] = url
	}
	return queues, nil
}
