package awstest

import "github.com/runlane/runlane-go/lane"

// Unlimited takes every trigger, however many of the storage's writes a front throttles.
type Unlimited struct{ lane.Storage }

// Unwrap lets lane.As find the storage's other abilities.
func (u Unlimited) Unwrap() lane.Storage { return u.Storage }

// AdmitRuns implements lane.Admitter.
func (Unlimited) AdmitRuns(int) error { return nil }
