// Command function is what the test of the Lambda executor deploys: it echoes, fails or ends as its input says.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
)

type request struct {
	Do   string `json:"do"`
	Text string `json:"text"`
}

type response struct {
	Text     string `json:"text"`
	Endpoint string `json:"endpoint"`
	Process  int    `json:"process"`
}

func main() {
	lambda.Start(func(ctx context.Context, r request) (response, error) {
		switch r.Do {
		case "fail":
			return response{}, errors.New(r.Text)
		case "exit":
			os.Exit(3)
		case "hang":
			time.Sleep(time.Hour) // the executor has to end this, not the context
		}
		return response{Text: r.Text, Endpoint: os.Getenv("AWS_ENDPOINT_URL"), Process: os.Getpid()}, nil
	})
}
