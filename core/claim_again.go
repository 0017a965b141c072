package core

import (
	"context"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/remote"
)

// Bounds of [ClaimOptions.ClaimID], in bytes.
const (
	MinClaimID = 20
	MaxClaimID = 100
)

// claimIDsKept bounds the memory. Forgetting costs a client whose answer was lost the rest of the lease.
const claimIDsKept = 10_000

// claimIDs remembers, for each claim with an ID, its run, until no lease of it can be left.
type claimIDs struct {
	mu   sync.Mutex
	runs map[string]claimedRun // by the lease token
}

type claimedRun struct {
	id    runlane.RunID
	until time.Time
}

func (c *claimIDs) find(lease string) runlane.RunID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[lease].id
}

func (c *claimIDs) add(lease string, id runlane.RunID, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.runs) >= claimIDsKept {
		for other, run := range c.runs {
			if now.After(run.until) || len(c.runs) >= claimIDsKept {
				delete(c.runs, other)
			}
		}
	}
	if c.runs == nil {
		c.runs = map[string]claimedRun{}
	}
	c.runs[lease] = claimedRun{id, now.Add(MaxClaimLease)}
}

// again returns the claim that an earlier call with the ID took, nil without one, or if its attempt is over.
func (c *claiming) again(ctx context.Context) (*Claim, error) {
	id := c.rt.claimIDs.find(remote.LeaseOf(c.options.ClaimID))
	if id == "" {
		return nil, nil
	}
	claim, err := c.rt.ByToken(ctx, remote.Token(id, c.options.ClaimID))
	if e, ok := asError(err); ok && e.Conflict == runlane.ConflictLeaseOwnership {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	whole, err := c.rt.get(ctx, id)
	if err != nil {
		return nil, err
	}
	claim.Run.Payload, claim.Run.Sealed = whole.Payload, whole.Sealed
	return claim, nil
}

func checkClaimID(id string) error {
	if id == "" {
		return nil
	}
	if len(id) < MinClaimID || len(id) > MaxClaimID {
		return invalidInput("make it of random characters, and anew for each claim",
			"ClaimOptions.ClaimID has %d bytes, not %d to %d", len(id), MinClaimID, MaxClaimID)
	}
	return runlane.ValidateKey("claim", id)
}
