package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// SignatureHeader proves to the receiver who sent the body, and that nothing changed on the way.
const SignatureHeader = "X-Signature-256"

// Sign returns the header's value: "sha256=" and the hexadecimal HMAC-SHA256 of the body.
func Sign(secret, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// Verify is for receivers. It takes the same time wherever the signatures differ.
func Verify(secret, body []byte, signature string) bool {
	return hmac.Equal([]byte(Sign(secret, body)), []byte(signature))
}
