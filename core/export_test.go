package core

import (
	"log/slog"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// NewCodedStorage is the storage as a runtime with the codec sees it.
func NewCodedStorage(storage lane.Storage, codec runlane.Codec) lane.Storage {
	return &codedStorage{Storage: storage, codec: codec, check: func(string, []byte) error { return nil }}
}

// NewBodyStorage is the storage as a runtime sees it that keeps every body apart.
func NewBodyStorage(storage lane.Storage, bodies lane.BodyStore) lane.Storage {
	return &bodyStorage{Storage: storage, bodies: &lane.Bodies{Store: bodies}, logger: slog.Default()}
}

// ParseCoded is for the fuzz target.
var ParseCoded = parseCoded

// CodedHead is its inverse.
var CodedHead = codedHead
