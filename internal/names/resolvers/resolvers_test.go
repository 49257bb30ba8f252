// SPDX-License-Identifier: Apache-2.0

package resolvers

import (
	"fmt"
	"net/netip"
	"testing"
)

// WL-13 (P): which resolvers are asked, by what the machine's files say.
func TestChoose(t *testing.T) {
	own := func(a netip.Addr) bool { return a.String() == "10.96.0.10" || a.String() == "10.88.0.1" }
	for name, c := range map[string]struct{ text, behind, want string }{
		"ordinary":                   {"search x\nnameserver 192.0.2.1 # a word\nnameserver 192.0.2.2\n", "", "[192.0.2.1:53 192.0.2.2:53] []"},
		"systemd-resolved":           {"nameserver 127.0.0.53\noptions edns0\n", "nameserver 192.0.2.9\n", "[192.0.2.9:53] []"},
		"its other address":          {"nameserver 127.0.0.54\n", "nameserver 192.0.2.9\n", "[192.0.2.9:53] []"},
		"nothing behind it":          {"nameserver 127.0.0.53\n", "", "[127.0.0.53:53] []"},
		"dnsmasq":                    {"nameserver 127.0.0.1\n", "nameserver 192.0.2.9\n", "[127.0.0.1:53] []"},
		"another beside it":          {"nameserver 127.0.0.53\nnameserver 192.0.2.1\n", "nameserver 192.0.2.9", "[127.0.0.53:53 192.0.2.1:53] []"},
		"ourselves":                  {"nameserver 10.96.0.10\nnameserver 192.0.2.1\n", "", "[192.0.2.1:53] [10.96.0.10:53]"},
		"ourselves behind systemd's": {"nameserver 127.0.0.53\n", "nameserver 10.88.0.1\n", "[] [10.88.0.1:53]"},
		"ourselves, in IPv6's form":  {"nameserver ::ffff:10.96.0.10\n", "", "[] [10.96.0.10:53]"},
		"of a link":                  {"nameserver fe80::1%eth0\n", "", "[[fe80::1%eth0]:53] []"},
		"twice and too many":         {"nameserver 1.1.1.1\nnameserver 1.1.1.1\nnameserver 2.2.2.2\nnameserver 3.3.3.3\nnameserver 4.4.4.4", "", "[1.1.1.1:53 2.2.2.2:53 3.3.3.3:53] []"},
		"nonsense":                   {"nameserver\nnameserver x\n;nameserver 1.2.3.4\n", "", "[] []"},
		"nothing":                    {"", "nameserver 192.0.2.9", "[] []"},
	} {
		got := Choose(c.text, c.behind, own)
		if text := fmt.Sprint(got.Resolvers, got.Refused); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}

// FuzzChoose (WL-13): whatever the files hold, at most three resolvers come of it, and none that is ourselves.
func FuzzChoose(f *testing.F) {
	f.Add("nameserver 127.0.0.53\n", "nameserver 192.0.2.9\n")
	f.Fuzz(func(t *testing.T, text, behind string) {
		own := netip.MustParseAddr("10.96.0.10")
		c := Choose(text, behind, func(a netip.Addr) bool { return a == own })
		if len(c.Resolvers)+len(c.Refused) > most {
			t.Errorf("%v", c)
		}
		for _, r := range c.Resolvers {
			if r.Addr() == own || !r.IsValid() {
				t.Errorf("%v", c)
			}
		}
	})
}
