// Package freeport finds TCP ports for servers that are started as separate processes, and so cannot be given a
// listener.
//
// A port that the kernel handed out (":0") is a bad choice for them: until the server listens, the kernel may hand it
// to any other program, whose answers are then taken for the server's. The ports here are below the ranges from which
// Linux and macOS hand out.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ranges of Linux and macOS begin at 32768 and 49152.
const first, last = 20000, 32767

// tries bounds the search: with half of the range in use, this many misses in a row do not happen.
const tries = 100

// Choose returns count different ports of the loopback interface that no server has now.
func Choose(count int) ([]int, error) {
	var ports []int
	var listeners []net.Listener // open until the end, so that no port is chosen twice
	defer func() {
		for _, listener := range listeners {
			_ = listener.Close()
		}
	}()
	var err error
	for range count * tries {
		if len(ports) == count {
			return ports, nil
		}
		port := first + rand.IntN(last-first+1) // it is no secret
		var listener net.Listener
		if listener, err = net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			ports, listeners = append(ports, port), append(listeners, listener)
		}
	}
	if len(ports) == count {
		return ports, nil
	}
	return nil, fmt.Errorf("no free port between %d and %d: %w", first, last, err)
}
