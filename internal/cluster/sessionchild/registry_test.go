// SPDX-License-Identifier: Apache-2.0

package sessionchild

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// ownAddresses are a node's.
func ownAddresses() ([]net.Addr, error) {
	return []net.Addr{&net.IPNet{IP: net.ParseIP("10.0.0.5"), Mask: net.CIDRMask(24, 32)},
		&net.IPNet{IP: net.ParseIP("2001:db8::5"), Mask: net.CIDRMask(64, 128)}}, nil
}

// DA-07: whoever runs an image beside a pod does not reach by its name what only the node is to reach.
func TestRegistriesBeyondTheNode(t *testing.T) {
	own, _ := ownAddresses()
	for address, refused := range map[string]bool{
		"127.0.0.1": true, "::1": true, "::ffff:127.0.0.1": true, "0.0.0.0": true, "169.254.169.254": true,
		"fe80::1%eth0": true, "::ffff:169.254.169.254": true, "::": true, "224.0.0.1": true,
		"10.0.0.5": true, "::ffff:10.0.0.5": true, "2001:db8::5": true,
		"fd00:ec2::254": true, "168.63.129.16": true, "100.100.100.200": true, "192.0.0.192": true,
		"10.0.0.1": false, "192.0.2.7": false, "2001:db8::1": false,
	} {
		if err := notOfNode(netip.MustParseAddr(address), own); (err != nil) != refused {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// DA-07: that holds for the address that is dialled, whichever name it has, and for what a proxy is asked for; the
// proxy itself may be on the node.
func TestRegistriesByProxy(t *testing.T) {
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer srv.Close()
	at, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	none := func(*http.Request) (*url.URL, error) { return nil, nil }
	proxy := func(*http.Request) (*url.URL, error) { return at, nil }
	for name, c := range map[string]struct {
		proxy   func(*http.Request) (*url.URL, error)
		to      string
		refused bool
	}{
		"the node":                 {none, srv.URL, true},
		"its own address":          {none, "http://10.0.0.5/v2/", true},
		"the node, by a proxy":     {proxy, "http://10.0.0.5/v2/", true},
		"its link, by a proxy":     {proxy, "http://169.254.169.254/v2/", true},
		"by a name, by a proxy":    {proxy, "http://localhost/v2/", true},
		"a registry, by its proxy": {proxy, "http://192.0.2.7/v2/", false},
	} {
		asked.Store(0)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.to, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := newBeyond(c.proxy, ownAddresses).RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		if (err != nil) != c.refused || asked.Load() > 0 == c.refused ||
			c.refused && !strings.Contains(err.Error(), "registries beyond it") {
			t.Errorf("%s: %v, asked %d times", name, err, asked.Load())
		}
	}
}
