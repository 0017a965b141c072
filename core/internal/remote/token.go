// Package remote has the rules for clients that claim runs from other processes: the token of a claim, the search for a
// run, and checks of input. Package core claims the runs and records their outcomes.
package remote

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/runlane/runlane-go"
)

// A claim's token has the run's ID and a secret. The lease token is a hash of the secret, so that seeing the lease does
// not allow ending the attempt, and no server keeps any state.

const (
	claimMark     = "rlc1."
	leaseMark     = "claim_"
	maxClaimToken = 1024
	leaseBytes    = 20 // of the hash
)

// Token returns the token that proves the claim of a run.
func Token(id runlane.RunID, secret string) string {
	return claimMark + base64.RawURLEncoding.EncodeToString([]byte(id)) + "." + secret
}

// LeaseOf returns the lease token.
func LeaseOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return leaseMark + hex.EncodeToString(sum[:leaseBytes])
}

// Parse returns the run of a claim token, and the token that its lease must have.
func Parse(token string) (id runlane.RunID, lease string, ok bool) {
	text, marked := strings.CutPrefix(token, claimMark)
	name, secret, cut := strings.Cut(text, ".")
	if !marked || !cut || secret == "" || len(token) > maxClaimToken {
		return "", "", false
	}
	given, err := base64.RawURLEncoding.Strict().DecodeString(name)
	id = runlane.RunID(given)
	if err != nil || id.Validate() != nil {
		return "", "", false
	}
	return id, LeaseOf(secret), true
}

// Invalid returns the error for a text that is not a claim token.
func Invalid() error {
	return &runlane.Error{
		Code:    runlane.ErrTokenInvalid,
		Message: "the token is not a claim token",
		Hint:    "send the token of the claim's answer unchanged",
	}
}

// Lost returns the error for an attempt that the caller no longer owns.
func Lost(id runlane.RunID) error {
	return &runlane.Error{
		Code:     runlane.ErrStorageConflict,
		Conflict: runlane.ConflictLeaseOwnership,
		Message:  "the claim has ended: another attempt owns the run, or it has an outcome",
		RunID:    id,
		Hint:     "stop the work, and claim the next run",
	}
}
