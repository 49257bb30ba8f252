// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
)

// PL-37: what does not go with the network of a cluster's plug-ins is refused, with what to leave out.
func TestValidateCNI(t *testing.T) {
	for name, x := range map[string]struct {
		o    Options
		want string // of the refusal; empty: none
	}{
		"a network of its own": {Options{PodCIDRs: []string{"10.1.0.0/24"}}, ""},
		"plug-ins":             {Options{CNIConfDir: "/etc/cni/net.d"}, ""},
		"plug-ins elsewhere": {Options{CNIConfDir: "/etc/cni/net.d",
			CNIBinDirs: []string{"/usr/lib/cni", "/opt/cni/bin"}}, ""},
		"no configuration":        {Options{CNIBinDirs: []string{"/opt/cni/bin"}}, "--cni-conf-dir"},
		"a relative folder":       {Options{CNIConfDir: "net.d"}, `"net.d"`},
		"a relative folder of it": {Options{CNIConfDir: "/etc/cni/net.d", CNIBinDirs: []string{"bin"}}, `"bin"`},
		"of another runtime": {Options{CNIConfDir: "/etc/cni/net.d", RuntimeEndpoint: "unix:///c.sock"},
			"--container-runtime-endpoint"},
		"two networks": {Options{CNIConfDir: "/etc/cni/net.d", PodCIDRs: []string{"10.1.0.0/24"}},
			"--pod-cidr"},
	} {
		t.Run(name, func(t *testing.T) {
			err := x.o.validateCNI()
			if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
				t.Errorf("%v; want %q", err, x.want)
			}
		})
	}
}
