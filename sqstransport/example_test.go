package sqstransport_test

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sqstransport"
)

// Package awslane composes storage and transport on AWS. New is for a storage of another kind.
func ExampleNew() {
	client := sqs.NewFromConfig(aws.Config{Region: "eu-west-1"})
	transport, err := sqstransport.New(client, map[runlane.QueueName]string{
		"mail":   "https://sqs.eu-west-1.amazonaws.com/123456789012/mail",
		"orders": "https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo",
	}, &sqstransport.Options{Fair: true})
	if err != nil {
		panic(err)
	}
	l, err := lane.New(memlane.NewStorage(nil), transport, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Transport.Queues(), transport.MaxDelay("mail"), transport.MaxDelay("orders"))
	// Output: [mail orders] 15m0s 0s
}

// The bridge asks for which queues an event may hold wakeups.
func ExampleTransport_BindingOf() {
	client := sqs.NewFromConfig(aws.Config{Region: "eu-west-1"})
	transport, err := sqstransport.New(client, map[runlane.QueueName]string{
		"default": "https://sqs.eu-west-1.amazonaws.com/123456789012/shop-work",
	}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(transport.BindingOf("arn:aws:sqs:eu-west-1:123456789012:shop-work"))
	fmt.Println(transport.BindingOf("arn:aws:sqs:eu-west-1:123456789012:another"))
	// Output:
	// default true
	//  false
}
