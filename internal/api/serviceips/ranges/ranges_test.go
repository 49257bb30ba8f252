// SPDX-License-Identifier: Apache-2.0

package ranges

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/apis/networking"
)

// cidr is a ServiceCIDR that is kept.
func cidr(name string, version uint64, networks ...string) Range {
	return Of(&networking.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
		Finalizers: []string{"example.com/other", Finalizer}}, Spec: networking.ServiceCIDRSpec{CIDRs: networks}},
		version)
}

func leaving(r Range) Range {
	r.Leaving = true
	r.Version++
	return r
}

func set(own string, all ...Range) *Set {
	s := NewSet(netip.MustParsePrefix(own))
	for _, r := range all {
		s.Put(r)
	}
	return s
}

func addrs(list ...string) func(func(netip.Addr) bool) {
	return func(yield func(netip.Addr) bool) {
		for _, text := range list {
			if !yield(netip.MustParseAddr(text)) {
				return
			}
		}
	}
}

// TestOpen: WL-25: where addresses are given from: first from the network of the server's start, unless its object is
// leaving; never from a range that is leaving or that nothing keeps; of the server's address family only.
func TestOpen(t *testing.T) {
	own, unkept := "10.96.0.0/24", cidr("a", 1, "10.1.0.0/24")
	unkept.Kept = false
	for _, tt := range []struct {
		name        string
		set         *Set
		open, known string
	}{
		{"before objects", set(own), "[10.96.0.0/24]", "[10.96.0.0/24]"},
		{"its object", set(own, cidr("kubernetes", 1, own)), "[10.96.0.0/24]", "[10.96.0.0/24]"},
		{"two", set(own, cidr("a", 1, "10.1.0.7/24"), cidr("kubernetes", 1, own)), "[10.96.0.0/24 10.1.0.0/24]",
			"[10.96.0.0/24 10.1.0.0/24]"},
		{"two of one network", set(own, cidr("a", 1, own), cidr("kubernetes", 1, own)), "[10.96.0.0/24]",
			"[10.96.0.0/24]"},
		{"another start's object", set(own, cidr("kubernetes", 1, "10.97.0.0/24")), "[10.96.0.0/24 10.97.0.0/24]",
			"[10.96.0.0/24 10.97.0.0/24]"},
		{"its object leaving", set(own, leaving(cidr("kubernetes", 1, own)), cidr("a", 1, "10.1.0.0/24")),
			"[10.1.0.0/24]", "[10.96.0.0/24 10.1.0.0/24]"},
		{"one leaving", set(own, leaving(cidr("a", 1, "10.1.0.0/24"))), "[10.96.0.0/24]", "[10.96.0.0/24 10.1.0.0/24]"},
		{"one not kept", set(own, unkept), "[10.96.0.0/24]", "[10.96.0.0/24 10.1.0.0/24]"},
		{"of two families", set(own, cidr("a", 1, "fd00::/64", "10.1.0.0/24")), "[10.96.0.0/24 10.1.0.0/24]",
			"[10.96.0.0/24 10.1.0.0/24]"},
		{"IPv6", set("fd00:1::/112", cidr("a", 1, "fd00::/64", "10.1.0.0/24")), "[fd00:1::/112 fd00::/64]",
			"[fd00:1::/112 fd00::/64]"},
		{"one within another", set(own, cidr("a", 1, "10.96.0.0/16")), "[10.96.0.0/24 10.96.0.0/16]", "[10.96.0.0/16]"},
		{"the whole world", set(own, cidr("a", 1, "0.0.0.0/0")), "[10.96.0.0/24 0.0.0.0/0]", "[10.96.0.0/24]"},
		{"nonsense", set(own, cidr("a", 1, "x")), "[10.96.0.0/24]", "[10.96.0.0/24]"},
	} {
		if open, known := fmt.Sprint(tt.set.Open()), fmt.Sprint(tt.set.Known()); open != tt.open || known != tt.known {
			t.Errorf("%s: open %s, known %s; want %s, %s", tt.name, open, known, tt.open, tt.known)
		}
	}
}

// TestOwnRangeGoes: WL-25: the network of the server's start is given from no more once its object has gone.
func TestOwnRangeGoes(t *testing.T) {
	s := set("10.96.0.0/24", cidr("kubernetes", 1, "10.96.0.0/24"), cidr("a", 1, "10.1.0.0/24"))
	s.End("kubernetes", "uid-kubernetes")
	if got := fmt.Sprint(s.Open()); got != "[10.1.0.0/24]" {
		t.Errorf("open: %s", got)
	}
}

// TestLateNews: WL-25: an older version that is told later changes nothing, nor does one of an object that has gone; a
// new object of the name does.
func TestLateNews(t *testing.T) {
	s := set("10.96.0.0/24", cidr("a", 5, "10.1.0.0/24"))
	gone := leaving(cidr("a", 5, "10.1.0.0/24"))
	if !s.Put(gone) || s.Put(cidr("a", 5, "10.1.0.0/24")) || s.Put(gone) || !slices.Equal(s.Leaving(), []string{"a"}) {
		t.Errorf("leaving: %v", s.Leaving())
	}
	s.End("a", gone.UID)
	if s.Put(cidr("a", 9, "10.1.0.0/24")) || len(s.Leaving()) > 0 || len(s.Open()) != 1 {
		t.Errorf("one that has gone is back: %v", s.Open())
	}
	again := cidr("a", 10, "10.2.0.0/24")
	again.UID = "another"
	s.End("a", "uid-a") // told twice
	if !s.Put(again) || fmt.Sprint(s.Open()) != "[10.96.0.0/24 10.2.0.0/24]" {
		t.Errorf("open: %v", s.Open())
	}
	s.End("a", "uid-a")
	if len(s.Open()) != 2 {
		t.Error("the end of the one before takes the new one out")
	}
}

// TestRelease: WL-25: a range goes when no address in use needs it; of two that could each go for the other one stays.
func TestRelease(t *testing.T) {
	own := "10.96.0.0/24"
	a, wide := cidr("a", 1, "10.1.0.0/24"), cidr("wide", 1, "10.1.0.0/16")
	twin := cidr("twin", 1, "10.1.0.0/24")
	for _, tt := range []struct {
		name  string
		set   *Set
		used  []string
		asked string
		needs string // an address, or "" if it may go
		may   bool
	}{
		{"without addresses", set(own, leaving(a)), []string{"10.96.0.1", "10.1.1.1"}, "a", "", true},
		{"with one", set(own, leaving(a)), []string{"10.96.0.1", "10.1.0.9"}, "a", "10.1.0.9", false},
		{"within another", set(own, leaving(a), wide), []string{"10.1.0.9"}, "a", "", true},
		{"another within it", set(own, a, leaving(wide)), []string{"10.1.0.9"}, "wide", "", true},
		{"another within a part of it", set(own, a, leaving(wide)), []string{"10.1.0.9", "10.1.1.9"}, "wide",
			"10.1.1.9", false},
		{"not leaving", set(own, a), nil, "a", "", false},
		{"not there", set(own), nil, "a", "", false},
		{"within that of the start, which has no object", set(own, leaving(cidr("a", 1, "10.96.0.0/28"))),
			[]string{"10.96.0.3"}, "a", "", true},
		{"the server's own", set(own, leaving(cidr("kubernetes", 1, own))), []string{"10.96.0.1"}, "kubernetes",
			"10.96.0.1", false},
	} {
		needs, may := tt.set.Release(tt.asked, addrs(tt.used...))
		if may != tt.may || needs.IsValid() != (tt.needs != "") || needs.IsValid() && needs.String() != tt.needs {
			t.Errorf("%s: needs %s, may go: %v", tt.name, needs, may)
		}
	}
	s := set(own, leaving(a), leaving(twin))
	used := addrs("10.1.0.9")
	if _, may := s.Release("a", used); !may {
		t.Error("the first of two does not go")
	}
	if _, may := s.Release("twin", used); may {
		t.Error("both of two go")
	}
	if _, may := s.Release("a", used); !may { // its finalizer could not be removed: it is asked again
		t.Error("what may go may not any more")
	}
	news := leaving(a)
	news.Version += 3
	if !s.Put(news) {
		t.Error("a newer version is no news")
	}
	if _, may := s.Release("twin", used); may {
		t.Error("news of the first let the second go")
	}
}

// TestUsable: WL-25: the first address of a network, and the last of IPv4, are no service's.
func TestUsable(t *testing.T) {
	for text, want := range map[string]string{"10.1.0.0/29": "10.1.0.1 10.1.0.2 10.1.0.3 10.1.0.4 10.1.0.5 10.1.0.6",
		"10.1.0.8/31": "", "10.1.0.8/32": "", "fd00::/126": "fd00::1 fd00::2 fd00::3",
		"255.255.255.252/30": "255.255.255.253 255.255.255.254"} {
		p := netip.MustParsePrefix(text)
		got := ""
		for a := p.Addr().Prev(); a.IsValid(); a = a.Next() {
			if Usable(p, a) {
				got += " " + a.String()
			}
			if a.Compare(p.Addr()) > 0 && !p.Contains(a) {
				break
			}
		}
		if want != "" {
			want = " " + want
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
