package core

import (
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// NewCodedStorage is the storage as a runtime with the codec sees it.
func NewCodedStorage(storage lane.Storage, codec runlane.Codec) lane.Storage {
	return &codedStorage{Storage: storage, codec: codec}
}

// ParseCoded is for the fuzz target.
var ParseCoded = parseCoded

// CodedHead is its inverse.
var CodedHead = codedHead
