package outbound_test

import (
	"net/netip"
	"testing"

	"github.com/runlane/runlane-go/internal/outbound"
)

func TestIsPublic(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"1.1.1.1": true, "203.0.112.1": true, "2606:4700:4700::1111": true, "::ffff:1.1.1.1": true,
		"0.0.0.0": false, "10.1.2.3": false, "100.64.0.1": false, "127.0.0.1": false, "127.9.9.9": false,
		"169.254.169.254": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false, "198.18.0.1": false,
		"224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false, "192.0.0.8": false,
		"::": false, "::1": false, "::ffff:10.0.0.1": false, "::127.0.0.1": false, "fe80::1": false, "fe80::1%eth0": false,
		"fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "64:ff9b::a00:1": false, "2002:a00:1::": false,
		"2001:0:a00:1::": false, "2001:db8::1": false, "2001:4860:4860::8888": true,
	} {
		if got := outbound.IsPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
