// Package remote decides what clients of other processes may do with the runs that they claim: the token of a claim, the
// search for a run, and what they may say. Package core takes the runs and records what became of them.
package remote

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/runlane/runlane-go"
)

// The token of a claim names its run and has a secret. The token of the run's lease is a hash of the secret, so that
// who sees the lease cannot end the attempt, and no server has to keep anything.

const (
	claimMark     = "rlc1."
	leaseMark     = "claim_"
	maxClaimToken = 1024
	leaseBytes    = 20 // of the hash
)

// Token is what proves the claim of a run.
func Token(id runlane.RunID, secret string) string {
	return claimMark + base64.RawURLEncoding.EncodeToString([]byte(id)) + "." + secret
}

// LeaseOf is the token of the lease.
func LeaseOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return leaseMark + hex.EncodeToString(sum[:leaseBytes])
}

// Parse reads the token of a claim: which run it is for, and the token that its lease must have.
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

// Invalid says that a text is no token.
func Invalid() error {
	return &runlane.Error{
		Code:    runlane.ErrTokenInvalid,
		Message: "the token is none of a claim",
		Hint:    "send the token that the claim was answered with, as it is",
	}
}

// Lost says that the attempt is not the caller's any more.
func Lost(id runlane.RunID) error {
	return &runlane.Error{
		Code:     runlane.ErrStorageConflict,
		Conflict: runlane.ConflictLeaseOwnership,
		Message:  "the claim has ended: another attempt owns the run, or it has an outcome",
		RunID:    id,
		Hint:     "stop the work, and claim the next run",
	}
}
