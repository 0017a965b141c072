package lambdatest

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/functions"
)

// Deployment is what the template tells a function of the things that it deploys, on local AWS.
type Deployment struct {
	Role        string
	Environment runlane.Environment
	Table       string
	Queues      map[runlane.QueueName]string // their URLs
	Endpoint    string                       // "" is AWS_ENDPOINT_URL of this process
	DynamoDB    string                       // another endpoint of DynamoDB
}

// Variables are for [Options.Environment]. changes come on top; "" leaves a variable out.
func (d *Deployment) Variables(changes map[string]string) []string {
	var queues []string
	for _, name := range slices.Sorted(maps.Keys(d.Queues)) {
		queues = append(queues, string(name)+"="+d.Queues[name])
	}
	all := map[string]string{
		"AWS_ACCESS_KEY_ID":         "test",
		"AWS_SECRET_ACCESS_KEY":     "test",
		"AWS_REGION":                "us-east-1",
		"AWS_EC2_METADATA_DISABLED": "true",
		"AWS_NEW_RETRIES_2026":      "true",
		"AWS_ENDPOINT_URL":          d.Endpoint,
		"AWS_ENDPOINT_URL_DYNAMODB": d.DynamoDB,
		functions.RoleVariable:      d.Role,
		awslane.EnvironmentVariable: string(d.Environment),
		awslane.TableVariable:       d.Table,
		awslane.QueuesVariable:      strings.Join(queues, ","),
	}
	if d.Endpoint == "" {
		all["AWS_ENDPOINT_URL"] = os.Getenv("AWS_ENDPOINT_URL")
	}
	maps.Copy(all, changes)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] != "" {
			list = append(list, name+"="+all[name])
		}
	}
	return list
}
