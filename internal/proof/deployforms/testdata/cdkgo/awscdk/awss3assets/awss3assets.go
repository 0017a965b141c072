// Package awss3assets stands for the package of that name.
package awss3assets

import "github.com/aws/constructs-go/constructs/v10"

// AssetProps are those of an asset.
type AssetProps struct {
	Path *string
}

// Asset is an asset.
type Asset interface {
	S3BucketName() *string
	S3ObjectKey() *string
}

type asset struct{ bucket, key string }

func (a *asset) S3BucketName() *string { return &a.bucket }
func (a *asset) S3ObjectKey() *string  { return &a.key }

// NewAsset makes one.
func NewAsset(scope constructs.Construct, id *string, props *AssetProps) Asset {
	constructs.NewConstruct(scope, id)
	return &asset{bucket: "assets", key: *props.Path + ".zip"}
}
