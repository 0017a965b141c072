// Package awsclient has a fix that every client of AWS here needs.
package awsclient

import (
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Keep returns a client that keeps its connections. The SDK closes a request's body once the head of the answer
// arrives, while net/http may still ask it for more. A body with io.WriterTo then returns io.EOF, which net/http takes
// for a failed request: it closes the connection and loses the rest of the answer. A plain io.Reader ends well.
func Keep(client aws.HTTPClient) aws.HTTPClient { return keeping{client} }

type keeping struct{ below aws.HTTPClient }

func (c keeping) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = onlyRead{r.Body}
	}
	return c.below.Do(r)
}

// onlyRead hides the body's other methods.
type onlyRead struct{ io.ReadCloser }
