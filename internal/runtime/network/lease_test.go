// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func prefixes(ss ...string) (out []netip.Prefix) {
	for _, s := range ss {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func TestLeasesAreUniqueInParallel(t *testing.T) {
	l := leases{filepath.Join(t.TempDir(), "state")}
	cidrs := prefixes("10.0.0.0/24", "fd00::/64")
	const n = 200
	got := make([][]netip.Addr, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var err error
			if got[i], err = l.take(Attachment{fmt.Sprint("c", i), "eth0"}, cidrs); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[netip.Addr]bool{}
	for i, pair := range got {
		if len(pair) != 2 || seen[pair[0]] || seen[pair[1]] {
			t.Fatalf("owner %d got %v", i, pair)
		}
		seen[pair[0]], seen[pair[1]] = true, true
	}
	held, junk, err := l.all()
	if err != nil || len(held) != 2*n || len(junk) != 0 {
		t.Fatalf("%d leases, junk %v, %v", len(held), junk, err)
	}
	for i := range n {
		wg.Go(func() {
			if err := l.releaseOwner(Attachment{fmt.Sprint("c", i), "eth0"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if held, _, _ := l.all(); len(held) != 0 {
		t.Errorf("left: %v", held)
	}
}

func TestLeasesGoRoundAndRunOut(t *testing.T) {
	l := leases{t.TempDir()}
	cidrs := prefixes("10.0.0.0/29") // .2 to .6 for pods
	var order []string
	take := func(id string) error {
		got, err := l.take(Attachment{id, "eth0"}, cidrs)
		if err == nil {
			order = append(order, got[0].String()[len("10.0.0."):])
		}
		return err
	}
	for _, id := range []string{"a", "b", "c"} {
		if err := take(id); err != nil {
			t.Fatal(err)
		}
		if err := l.releaseOwner(Attachment{id, "eth0"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"d", "e", "f", "g", "h"} {
		if err := take(id); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(order, " "); got != "2 3 4 5 6 2 3 4" {
		t.Errorf("addresses in the order %s", got)
	}
	err := take("one too many")
	if !errors.Is(err, ErrExhausted) || !strings.Contains(err.Error(), "10.0.0.0/29") {
		t.Errorf("error %v", err)
	}
	t.Run("both or none", func(t *testing.T) {
		both := prefixes("fd00::/64", "10.0.0.0/29")
		if _, err := l.take(Attachment{"x", "eth0"}, both); !errors.Is(err, ErrExhausted) {
			t.Errorf("error %v", err)
		}
		if held, _, _ := l.all(); len(held) != 5 {
			t.Errorf("leases %v", held)
		}
	})
}

// Whatever a crash or a stray hand did to the folder, the next pod gets an address that nobody has.
func TestLeasesSurviveDamage(t *testing.T) {
	l := leases{t.TempDir()}
	cidrs := prefixes("10.0.0.0/28")
	if _, err := l.take(Attachment{"a", "eth0"}, cidrs); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"leases/10.0.0.3": "", "leases/hello": "x", "lock": "10.0.0.999\n\xff\xff\n999"} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := l.take(Attachment{"b", "eth0"}, cidrs)
	if err != nil || got[0].String() != "10.0.0.4" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, junk, _ := l.all(); len(junk) != 2 {
		t.Errorf("junk %v", junk)
	}
	if _, err := l.prune(func(Attachment) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if held, junk, _ := l.all(); len(held) != 2 || len(junk) != 0 {
		t.Errorf("after pruning: %v, junk %v", held, junk)
	}
	if err := os.RemoveAll(l.dir); err != nil {
		t.Fatal(err)
	}
	if err := l.releaseOwner(Attachment{"a", "eth0"}); err != nil {
		t.Error("the folder is gone:", err)
	}
	if _, err := l.take(Attachment{"c", "eth0"}, cidrs); err != nil {
		t.Error("the folder is gone:", err)
	}
}

func TestUsable(t *testing.T) {
	for cidr, want := range map[string]string{
		"10.0.0.0/24": "10.0.0.2-10.0.0.254", "10.0.0.0/30": "10.0.0.2-10.0.0.2", "10.4.0.0/15": "10.4.0.2-10.5.255.254",
		"fd00::/64": "fd00::2-fd00::ffff:ffff:ffff:ffff", "fd00::4/126": "fd00::6-fd00::7",
	} {
		first, last := usable(netip.MustParsePrefix(cidr))
		if got := fmt.Sprintf("%s-%s", first, last); got != want {
			t.Errorf("%s: %s, want %s", cidr, got, want)
		}
	}
}

func FuzzParseAttachment(f *testing.F) {
	for _, s := range []string{"", "/", "a/b", "a/b/c", "a/", "/b", "abc\x00/eth0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, ok := parseAttachment(s)
		if ok && (a.String() != s || a.ContainerID == "" || a.IfName == "") {
			t.Errorf("%q became %+v", s, a)
		}
	})
}

func FuzzParseCursor(f *testing.F) {
	f.Add([]byte("10.0.0.1\nfd00::1\n"))
	f.Add([]byte("10.0.0.1\n\xff\n999.1.1.1\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := netip.MustParsePrefix("10.0.0.0/24")
		c := lockedCursor{addrs: parseCursor(b)}
		if last := c.last(p); last.IsValid() && !p.Contains(last) {
			t.Errorf("cursor %v is outside of %v", last, p)
		}
	})
}

func TestDerive(t *testing.T) {
	bridge, subnet, err := Derive("/var/lib/wherry", nil)
	if err != nil || len(bridge) > 15 || subnet.Bits() != 24 || popular(subnet) {
		t.Fatalf("%s %s %v", bridge, subnet, err)
	}
	if b, s, _ := Derive("/var/lib/wherry", nil); b != bridge || s != subnet {
		t.Error("not the same for the same folder")
	}
	if b, s, _ := Derive("/var/lib/wherry2", nil); b == bridge || s == subnet {
		t.Error("the same for another folder")
	}
	_, next, err := Derive("/var/lib/wherry", func(p netip.Prefix) bool { return p == subnet })
	if err != nil || next == subnet {
		t.Errorf("%s %v although taken", next, err)
	}
	ten := netip.MustParsePrefix("10.0.0.0/8")
	_, other, err := Derive("/var/lib/wherry", ten.Overlaps)
	if err != nil || !netip.MustParsePrefix("172.16.0.0/12").Overlaps(other) {
		t.Errorf("%s %v with all of 10/8 taken", other, err)
	}
	tried := map[netip.Prefix]bool{}
	if _, _, err := Derive("/x", func(p netip.Prefix) bool { tried[p] = true; return true }); err == nil || len(tried) < 50000 {
		t.Errorf("%d tried, error %v", len(tried), err)
	}
}

func TestConfigValidate(t *testing.T) {
	good := Config{Bridge: "wherry0", CIDRs: prefixes("10.0.0.0/24", "fd00::/64"), StateDir: "/state"}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		"no bridge name":                  func(c *Config) { c.Bridge = "" },
		"longer than the 15":              func(c *Config) { c.Bridge = "wherry0123456789" },
		"not a valid network device name": func(c *Config) { c.Bridge = "a/b" },
		"absolute path":                   func(c *Config) { c.StateDir = "state" },
		"no pod CIDR given":               func(c *Config) { c.CIDRs = nil },
		"is not valid":                    func(c *Config) { c.CIDRs = []netip.Prefix{{}} },
		"did you mean 10.0.0.0/24?":       func(c *Config) { c.CIDRs = prefixes("10.0.0.7/24") },
		"is too small":                    func(c *Config) { c.CIDRs = prefixes("10.0.0.0/31") },
		"at most one IPv4":                func(c *Config) { c.CIDRs = prefixes("10.0.0.0/24", "10.0.1.0/24") },
		"in IPv4 notation":                func(c *Config) { c.CIDRs = prefixes("::ffff:10.0.0.0/120") },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
