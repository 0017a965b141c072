// Package jsii stands for github.com/aws/jsii-runtime-go.
package jsii

// String is a pointer to a text.
func String(v string) *string { return &v }

// Close ends the process of Node.js that runs the CDK.
func Close() {}
