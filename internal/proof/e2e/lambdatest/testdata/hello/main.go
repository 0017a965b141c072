// Command hello is a Lambda function without anything of this project in it: what a start costs at least.
package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	fmt.Println("hello")
	lambda.Start(func(_ context.Context, event string) (string, error) { return event, nil })
}
