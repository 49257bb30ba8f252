// SPDX-License-Identifier: Apache-2.0

package serviceips

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	a, err := New(netip.MustParsePrefix("10.1.0.7/29"))
	if err != nil {
		t.Fatal(err)
	}
	if a.First().String() != "10.1.0.1" {
		t.Errorf("first is %s", a.First())
	}
	var got []string
	for range 5 { // six usable, one of them the server's
		ip, err := a.take(netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ip.String())
	}
	slices.Sort(got)
	if strings.Join(got, " ") != "10.1.0.2 10.1.0.3 10.1.0.4 10.1.0.5 10.1.0.6" {
		t.Errorf("taken: %v", got)
	}
	if _, err := a.take(netip.Addr{}); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("from an empty range: %v", err)
	}
	a.release(netip.MustParseAddr("10.1.0.4"))
	if ip, err := a.take(netip.Addr{}); err != nil || ip.String() != "10.1.0.4" {
		t.Errorf("after a release: %v, %v", ip, err)
	}
	if _, err := a.take(netip.MustParseAddr("10.1.0.9")); err == nil {
		t.Error("an address outside the range")
	}
	six, err := New(netip.MustParsePrefix("fd00:1::/112"))
	if err != nil || six.First().String() != "fd00:1::1" {
		t.Errorf("IPv6: %v, %v", six.First(), err)
	}
}
