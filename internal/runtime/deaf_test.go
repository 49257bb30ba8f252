// SPDX-License-Identifier: Apache-2.0

// As the program itself: an MPTCP socket takes no filter.
//
//go:debug multipathtcp=0
package runtime

import (
	"net"
	"net/netip"
	"os"
	"testing"
	"time"
)

// RS-01: a listener that is made deaf takes no connection, and the others of its process do.
func TestDeafen(t *testing.T) {
	listen := func(ip string) net.Listener {
		l, err := net.Listen("tcp4", net.JoinHostPort(ip, "0"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	deaf, hears := listen("127.87.72.99"), listen("127.0.0.1")
	for _, c := range []struct {
		addr string
		want bool
	}{{"127.87.72.98", false}, {"127.87.72.99", true}} {
		if found, err := deafen(netip.MustParseAddr(c.addr)); err != nil || found != c.want {
			t.Fatalf("%s: %v, %v", c.addr, found, err)
		}
	}
	if c, err := net.DialTimeout("tcp", deaf.Addr().String(), 100*time.Millisecond); !os.IsTimeout(err) {
		t.Errorf("it took a connection: %v, %v", c, err)
	}
	c, err := net.Dial("tcp", hears.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
