module github.com/runlane/runlane-go/spec

go 1.26.0
