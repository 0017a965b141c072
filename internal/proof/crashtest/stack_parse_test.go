package crashtest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stack is what debug.Stack says in a goroutine that another one made.
var stack = strings.ReplaceAll(`goroutine 34 [running]:
runtime/debug.Stack()
	GOROOT/src/runtime/debug/stack.go:26 +0x5e
MODULE/internal/proof/crashtest.(*trap).handle(0xc0001, {0x1, 0x2})
	ROOT/internal/proof/crashtest/trap_test.go:90 +0x1a
github.com/aws/smithy-go/middleware.(*Stack).HandleMiddleware(0x1)
	MODCACHE/smithy-go/middleware/stack.go:1 +0x1
MODULE/dynamostore.inParallel[...].func1()
	ROOT/dynamostore/read.go:12 +0x1
MODULE/dynamostore.(*Store).updateOwn.func1({0x1, 0x2})
	ROOT/dynamostore/plain.go:38 +0x1
golang.org/x/sync/errgroup.(*Group).Go.func1()
	MODCACHE/sync/errgroup/errgroup.go:93 +0x50
created by golang.org/x/sync/errgroup.(*Group).Go in goroutine 1
	MODCACHE/sync/errgroup/errgroup.go:78 +0x95
[originating from goroutine 1]:
golang.org/x/sync/errgroup.(*Group).Go(...)
	MODCACHE/sync/errgroup/errgroup.go:79 +0x95
MODULE/core.(*tick).each(...)
	ROOT/core/tick_deliver.go:200 +0x2b
`, "MODULE", module)

func TestParseStack_GoroutineOfAnother_HasTheFramesOfBoth(t *testing.T) {
	t.Parallel()
	got := parseStack(stack, "ROOT")
	want := []frame{
		{Name: "dynamostore.inParallel", File: "dynamostore/read.go", Line: 12},
		{Name: "dynamostore.(*Store).updateOwn", File: "dynamostore/plain.go", Line: 38},
		{Name: "core.(*tick).each", File: "core/tick_deliver.go", Line: 200, Ancestor: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if name := chain(got); name != "core.(*tick).each > dynamostore.(*Store).updateOwn > dynamostore.inParallel" {
		t.Errorf("the chain is %q", name)
	}
}

func TestReached_FramesOfAStack_NameTheirSites(t *testing.T) {
	t.Parallel()
	sites := map[string][]site{
		"dynamostore/plain.go": {
			{name: "dynamostore.(*Store).updateOwn > UpdateItem", first: 37, last: 41, callee: "UpdateItem"},
			{name: "dynamostore.(*Store).updateOwn > UpdateItem (2)", first: 50, last: 50, callee: "UpdateItem"},
			{name: "dynamostore.(*Store).updateOwn > DeleteItem", first: 38, last: 38, callee: "DeleteItem"},
		},
		"core/tick_deliver.go": { // an ancestor's line may be the next one, or far below
			{name: "core.(*tick).each > dynamostore.(*Store).updateOwn", first: 190, last: 198, callee: "updateOwn"},
			{name: "core.(*tick).other > dynamostore.(*Store).updateOwn", first: 200, last: 200, callee: "updateOwn"},
		},
	}
	frames := parseStack(stack, "ROOT")[1:]
	got := reached(sites, frames, "UpdateItem")
	want := []string{"dynamostore.(*Store).updateOwn > UpdateItem", "core.(*tick).each > dynamostore.(*Store).updateOwn"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
