// Package infra defines the table, indexes and queues of a Runlane deployment. Local AWS and the tests create their
// resources from it, and a test compares the deployment template with it. It is outside the module's compatibility
// promise.
//
// All functions are safe for concurrent use, also by several processes on the same names.
package infra
