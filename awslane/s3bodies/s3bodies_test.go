package s3bodies_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane/s3bodies"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

// fakeS3 answers the four requests of the store. The proof on local AWS (internal/proof/e2e) has an S3 that others wrote.
type fakeS3 struct {
	mu      sync.Mutex
	objects map[string]string
	refuse  string // the code of every answer
}

type listedObjects struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []listedObject
}

type listedObject struct {
	Key          string
	Size         int
	LastModified string
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := strings.TrimPrefix(r.URL.Path, "/bucket/")
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusInternalServerError)
	case f.refuse != "":
		refuse(w, http.StatusForbidden, f.refuse)
	case r.Method == http.MethodPut:
		f.objects[key] = string(body)
	case r.Method == http.MethodPost: // delete
		var in struct {
			Object []struct{ Key string }
		}
		if err := xml.Unmarshal(body, &in); err != nil {
			refuse(w, http.StatusBadRequest, "MalformedXML")
			return
		}
		for _, object := range in.Object {
			delete(f.objects, object.Key)
		}
		_, _ = io.WriteString(w, "<DeleteResult/>")
	case r.URL.Query().Has("list-type"):
		f.list(w, r)
	default:
		object, ok := f.objects[key]
		if !ok {
			refuse(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		_, _ = io.WriteString(w, object)
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
}

func (f *fakeS3) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	after, limit := max(q.Get("start-after"), q.Get("continuation-token")), 0
	_, _ = fmt.Sscan(q.Get("max-keys"), &limit)
	limit = min(limit, 2) // a page of S3 may be shorter than asked
	var out listedObjects
	for _, key := range slices.Sorted(maps.Keys(f.objects)) {
		switch {
		case key <= after || !strings.HasPrefix(key, q.Get("prefix")):
		case len(out.Contents) == limit:
			out.IsTruncated, out.NextContinuationToken = true, out.Contents[limit-1].Key
		default:
			out.Contents = append(out.Contents, listedObject{key, len(f.objects[key]), time.Now().UTC().Format(time.RFC3339)})
		}
	}
	_ = xml.NewEncoder(w).Encode(out)
}

func newStore(t testing.TB, fake *fakeS3) lane.BodyStore {
	t.Helper()
	served := httptest.NewServer(fake)
	t.Cleanup(served.Close)
	return s3bodies.New(s3.New(s3.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(served.URL), UsePathStyle: true, HTTPClient: served.Client(),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""), RetryMaxAttempts: 1,
	}), "bucket")
}

func TestStore_Conformance(t *testing.T) {
	t.Parallel()
	lanetest.RunBodyStore(t, func(t testing.TB) lane.BodyStore {
		return newStore(t, &fakeS3{objects: map[string]string{"another/object": "of another program"}})
	})
}

func TestStore_Refused_SaysWhatToDo(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"AccessDenied": "s3:PutObject", "NoSuchBucket": "RUNLANE_BODIES_BUCKET", "SlowDown": "S3's own error",
	} {
		s := newStore(t, &fakeS3{refuse: code})
		_, getErr := s.Get(t.Context(), "e/r/k")
		_, listErr := s.List(t.Context(), "", "", 1)
		for _, err := range []error{s.Put(t.Context(), "e/r/k", []byte("body")), getErr, listErr, s.Delete(t.Context(), "e/r/k")} {
			e, ok := errors.AsType[*runlane.Error](err)
			if !ok || e.Code != runlane.ErrStorageUnavailable || !strings.Contains(e.Hint, want) || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", code, err)
			}
		}
	}
}
