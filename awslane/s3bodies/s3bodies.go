// Package s3bodies keeps large bodies of runs in a bucket of S3. Package awslane uses it for RUNLANE_BODIES_BUCKET.
package s3bodies

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Store implements [lane.BodyStore]. The bucket may hold other objects, under keys that begin otherwise, and its own
// encryption applies. Versions of removed bodies are the bucket's affair: a lifecycle rule ends them.
type Store struct {
	client *s3.Client
	bucket string
}

var _ lane.BodyStore = (*Store)(nil)

// folder begins all keys, so that a bucket can be shared.
const folder = "runlane/"

// New returns the store in a bucket that exists. It makes no request.
func New(client *s3.Client, bucket string) *Store { return &Store{client: client, bucket: bucket} }

// Put implements lane.BodyStore. S3 checks the body's hash before it keeps it.
func (s *Store) Put(ctx context.Context, key string, body []byte) error {
	sum := sha256.Sum256(body)
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket:         &s.bucket,
		Key:            aws.String(folder + key),
		Body:           bytes.NewReader(body),
		ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(sum[:])),
		ContentLength:  aws.Int64(int64(len(body))),
	})
	return s.failed(ctx, "put", err)
}

// Get implements lane.BodyStore.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	got, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: aws.String(folder + key)})
	if _, missing := errors.AsType[*types.NoSuchKey](err); missing {
		return nil, fmt.Errorf("body %s: %w", key, fs.ErrNotExist)
	}
	if err != nil {
		return nil, s.failed(ctx, "get", err)
	}
	defer func() { _ = got.Body.Close() }()
	body := bytes.NewBuffer(make([]byte, 0, aws.ToInt64(got.ContentLength)+bytes.MinRead))
	_, err = io.Copy(body, got.Body)
	return body.Bytes(), s.failed(ctx, "get", err)
}

// maxListed is how many objects S3 lists at once.
const maxListed = 1000

// List implements lane.BodyStore.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (page []lane.ListedBody, err error) {
	in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(folder + prefix)}
	if after != "" {
		in.StartAfter = aws.String(folder + after)
	}
	for len(page) < limit {
		in.MaxKeys = aws.Int32(int32(min(limit-len(page), maxListed))) //nolint:gosec // at most 1000
		out, err := s.client.ListObjectsV2(ctx, in)
		if err != nil {
			return nil, s.failed(ctx, "list", err)
		}
		for _, object := range out.Contents {
			page = append(page, lane.ListedBody{
				Key: aws.ToString(object.Key)[len(folder):], Bytes: aws.ToInt64(object.Size), At: aws.ToTime(object.LastModified),
			})
		}
		if in.ContinuationToken = out.NextContinuationToken; !aws.ToBool(out.IsTruncated) {
			break
		}
	}
	return page, nil
}

// Delete implements lane.BodyStore.
func (s *Store) Delete(ctx context.Context, keys ...string) error {
	for len(keys) > 0 {
		chunk := keys[:min(len(keys), maxListed)]
		objects := make([]types.ObjectIdentifier, len(chunk))
		for i, key := range chunk {
			objects[i].Key = aws.String(folder + key)
		}
		out, err := s.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
			Bucket: &s.bucket, Delete: &types.Delete{Objects: objects, Quiet: aws.Bool(true)},
		})
		if err != nil {
			return s.failed(ctx, "delete", err)
		}
		if len(out.Errors) > 0 {
			first := out.Errors[0]
			return s.failed(ctx, "delete", fmt.Errorf("%d bodies, the first: %s: %s",
				len(out.Errors), aws.ToString(first.Code), aws.ToString(first.Message)))
		}
		keys = keys[len(chunk):]
	}
	return nil
}

// failed is the error of a request.
func (s *Store) failed(ctx context.Context, verb string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	e := &runlane.Error{
		Code:      runlane.ErrStorageUnavailable,
		Message:   fmt.Sprintf("%s a body in the bucket %q: S3 failed", verb, s.bucket),
		Hint:      "the cause is S3's own error",
		Retryable: true,
		Cause:     err,
	}
	var refused interface{ ErrorCode() string }
	if errors.As(err, &refused) {
		switch refused.ErrorCode() {
		case "NoSuchBucket":
			e.Message, e.Retryable = fmt.Sprintf("there is no bucket %q", s.bucket), false
			e.Hint = "make it, in the region of the table, or name another in RUNLANE_BODIES_BUCKET"
		case "AccessDenied":
			e.Message = fmt.Sprintf("%s a body in the bucket %q: access denied", verb, s.bucket)
			e.Hint = "allow s3:PutObject, s3:GetObject and s3:DeleteObject on its objects under " + folder +
				", and s3:ListBucket on the bucket"
		}
	}
	return e
}

// Above is the size from which bodies are worth a request to S3: an item of DynamoDB costs a write unit for each KB, in
// a transaction two, whenever it is written.
const Above = 64 << 10
