package freeport

import (
	"net"
	"slices"
	"strconv"
	"testing"
)

func TestChoose_PortsAreFreeDifferentAndNotTheKernels(t *testing.T) {
	t.Parallel()
	ports, err := Choose(50)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if got := slices.Compact(slices.Clone(ports)); len(got) != 50 {
		t.Errorf("%d different ports, want 50: %v", len(got), ports)
	}
	if ports[0] < first || ports[49] > last {
		t.Errorf("ports %v, want all between %d and %d", ports, first, last)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(ports[0]))
	if err != nil {
		t.Fatalf("a chosen port is not free: %v", err)
	}
	_ = listener.Close()
}
