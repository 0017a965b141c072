// Command hello is a Lambda function without anything of this project in it: what a start costs at least, and what the
// tests of the harness run. Its event says what to do.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	if os.Getenv("HELLO") == "exits" {
		os.Exit(3)
	}
	fmt.Println("hello")
	lambda.Start(func(ctx context.Context, event string) (string, error) {
		switch event {
		case "error":
			return "", errors.New("as asked")
		case "panic":
			panic("as asked")
		case "exit":
			os.Exit(4)
		case "hang":
			<-ctx.Done()
			select {}
		case "deadline":
			deadline, _ := ctx.Deadline()
			return fmt.Sprint(time.Until(deadline).Round(time.Second)), nil
		}
		return fmt.Sprint(event, " from ", os.Getpid()), nil
	})
}
