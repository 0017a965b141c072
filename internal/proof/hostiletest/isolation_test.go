package hostiletest_test

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/hostiletest"
	"github.com/runlane/runlane-go/memlane"
)

func TestEnvironments_Memlane_ReachNothingOfEachOther(t *testing.T) {
	t.Parallel()
	hostiletest.AttackAcross(t, memlane.NewStorage(&memlane.StorageOptions{Now: func() time.Time { return hostiletest.Noon }}))
}

func TestEnvironments_DynamoDB_ReachNothingOfEachOther(t *testing.T) {
	t.Parallel()
	client := awstest.DynamoDB(t)
	hostiletest.AttackAcross(t, dynamostore.New(client, awstest.Table(t, client), &dynamostore.Options{Now: func() time.Time { return hostiletest.Noon }, RequestTimeout: awstest.RequestTimeout}))
}
