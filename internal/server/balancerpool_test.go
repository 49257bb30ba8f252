// SPDX-License-Identifier: Apache-2.0

package server

import "testing"

// WL-09: a server that does not carry services itself gives none an address.
func TestBalancerPool(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		none bool
	}{
		"its own":             {Options{ServiceProxy: "nftables", NodeIPs: []string{"192.0.2.1"}}, false},
		"another program":     {Options{ServiceProxy: ProxyNone, NodeIPs: []string{"192.0.2.1"}}, true},
		"an external runtime": {Options{ServiceProxy: "nftables", RuntimeEndpoint: "unix:///x"}, true},
	} {
		if pool, err := c.o.balancerPool(); err != nil || (pool == nil) != c.none {
			t.Errorf("%s: %v, %v", name, pool, err)
		}
	}
}
