// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"github.com/vishvananda/netlink"

	"github.com/wherryproject/wherry/internal/runtime/network"
)

// RS-08: a start that is refused, early or late, leaves nothing on the machine: no mount, device, rule, route, cgroup or link. The data
// folder can be removed as any other. ATTACK C37.
func TestRefusedStart(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a server needs root")
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, row := range []struct {
		name, folder string
		with         func(t *testing.T, o *Options)
		want         string
	}{
		{"a port that is taken", "d", func(_ *testing.T, o *Options) { o.SecurePort = taken.Addr().(*net.TCPAddr).Port }, "is taken"},
		{"a store that is none", "d", func(t *testing.T, o *Options) { writeTo(t, filepath.Join(o.DataDir, "etcd")) }, "not a directory"},
		{"the same in a folder with a long name", strings.Repeat("d", 60), func(t *testing.T, o *Options) { writeTo(t, filepath.Join(o.DataDir, "etcd")) }, "not a directory"},
		{"a kubeconfig that cannot be written", "d", func(_ *testing.T, o *Options) { o.WriteKubeconfig = "/proc/kubeconfig" }, "--write-kubeconfig"},
		{"an address that the machine lacks", "d", func(_ *testing.T, o *Options) { o.KubeletAddress = "192.0.2.77" }, "--kubelet-port"},
		{"a socket that is in the way", "d", func(t *testing.T, o *Options) { writeTo(t, filepath.Join(o.DataDir, "wherry.sock", "x")) }, "wherry.sock"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), row.folder)
			o := Defaults()
			o.DataDir, o.SecurePort, o.KubeletPort, o.NodeIPs = dir, 0, 0, []string{"127.0.0.1"}
			row.with(t, &o)
			s, err := New(o, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("it ended with %v, want %q", err, row.want)
			}
			leavesNothing(t, dir)
			if t.Failed() {
				if err := Purge(t.Context(), dir, PurgeOptions{}); err != nil {
					t.Log(err)
				}
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
	}
}

func writeTo(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// leavesNothing looks for what a server of a data folder makes on its machine.
func leavesNothing(t *testing.T, dir string) {
	t.Helper()
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil || len(mounts) > 0 {
		t.Errorf("%d mounts, the first at %v, %v", len(mounts), mounts, err)
	}
	bridge, _, err := network.Derive(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if there, err := network.Exists(network.Config{Bridge: bridge}); there || err != nil {
		t.Errorf("bridge or rules of %s are there: %t, %v", bridge, there, err)
	}
	if n, err := readNetwork(dir); err == nil {
		routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range routes {
			if r.Dst != nil && r.Dst.String() == n.CIDRs[0] {
				t.Errorf("a route is there: %v", r)
			}
		}
	}
	links, err := filepath.Glob("/run/wherry/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, dir) {
			t.Errorf("a link is there: %s", link)
		}
	}
	groups, err := podCgroups(dir, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if folder, _ := groups.Unified(); folder != "" {
		if _, err := os.Stat(folder); err == nil {
			t.Errorf("a cgroup is there: %s", folder)
		}
	}
}
