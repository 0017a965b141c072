// Package infra holds the table, index and queue definitions of a Runlane deployment as code. Local AWS and the tests
// create their resources from here, and a test holds the deployment template equal to it, so there is one place to read
// what exists.
//
// The package is outside the module's compatibility promise: a deployment uses the template, not this package.
//
// All functions are safe for concurrent use, also by several processes on the same names.
package infra
