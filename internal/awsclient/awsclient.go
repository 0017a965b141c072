// Package awsclient has what every client of AWS here needs.
package awsclient

import (
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Keep is the client with connections that are kept. When net/http has sent a body it asks the body for more, and the
// SDK closes the body as soon as the head of an answer is there. Where the answer comes first, as on a busy machine, a
// body that writes itself (io.WriterTo) answers io.EOF. net/http takes that for a failed request: it closes the
// connection, and what of the answer was not read is lost. A body that is only read ends well.
func Keep(client aws.HTTPClient) aws.HTTPClient { return keeping{client} }

type keeping struct{ below aws.HTTPClient }

// Do implements aws.HTTPClient.
func (c keeping) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = onlyRead{r.Body}
	}
	return c.below.Do(r)
}

// onlyRead hides what else a body can do.
type onlyRead struct{ io.ReadCloser }
