// Package data holds real webhooks to try things out with. It is a separate package so that programs which deploy the
// application do not carry them.
package data

import (
	"bytes"
	"compress/gzip"
	_ "embed" // for the webhooks
	"io"
)

//go:embed github-webhooks.ndjson.gz
var githubWebhooks []byte

// GitHubWebhooks reads 329 deliveries of 58 kinds of events, one JSON object a line. Their origin and license are in
// README.md beside this file.
func GitHubWebhooks() (io.Reader, error) { return gzip.NewReader(bytes.NewReader(githubWebhooks)) }
