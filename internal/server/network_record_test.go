// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/wherryproject/wherry/internal/runtime/network"
)

// RS-07, RS-08: what a data folder remembers of its network is found also when network.json was removed or damaged under a running
// server: purge takes the bridge away, and the next start keeps the subnet.
func TestNetworkRecord(t *testing.T) {
	dir := t.TempDir()
	put := func(path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := readNetwork(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without: %v, %v", n, err)
	}
	put(networkFile(dir), "{")
	if n, err := readNetwork(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a damaged record alone: %v, %v", n, err)
	}
	subnet := netip.MustParsePrefix("10.7.7.0/24")
	told := network.Config{Bridge: "wherry0", CIDRs: []netip.Prefix{subnet}, StateDir: filepath.Join(dir, "x")}
	put(filepath.Join(dir, "runtime", "cni", "10-wherry.conflist"), string(network.ConfList(told)))
	for _, text := range []string{"", "{", "{}"} {
		put(networkFile(dir), text)
		if n, err := readNetwork(dir); err != nil || n.Bridge != "wherry0" {
			t.Errorf("record %q beside what the runtime was told: %v, %v", text, n, err)
		}
	}
	if err := os.Remove(networkFile(dir)); err != nil {
		t.Fatal(err)
	}
	if got := subnetBefore(dir, ""); got != subnet {
		t.Errorf("the subnet before is %v, want %v", got, subnet)
	}
	if got := subnetBefore(dir, "another"); got.IsValid() {
		t.Errorf("the subnet before, of another bridge, is %v", got)
	}
	put(networkFile(dir), `{"bridge":"wherry1","cidrs":["10.8.8.0/24"]}`)
	if n, err := readNetwork(dir); err != nil || n.Bridge != "wherry1" {
		t.Errorf("the record itself: %v, %v", n, err)
	}
}

// RS-09: a data folder that is given another bridge leaves the one it had, so that the pod CIDR can go along; while pods are attached to that
// one, the start is refused with what to do, and the bridge stays.
func TestAnotherBridge(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network devices need root")
	}
	dir := t.TempDir()
	subnet := netip.MustParsePrefix("10.201.35.0/24")
	former := network.Config{Bridge: "ws-former", CIDRs: []netip.Prefix{subnet}, StateDir: filepath.Join(dir, "leases")}
	if err := network.Setup(former); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = network.Teardown(former) })
	if err := os.WriteFile(networkFile(dir), []byte(`{"bridge":"ws-former","cidrs":["10.201.35.0/24"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	next := func() error {
		opts := Defaults()
		opts.DataDir, opts.BridgeName, opts.PodCIDRs, opts.CgroupDriver = dir, "ws-next", []string{subnet.String()}, "cgroupfs"
		_, err := (&Server{opts: opts, log: slog.New(slog.DiscardHandler)}).runtimeConfig()
		return err
	}
	bridge, err := netlink.LinkByName(former.Bridge)
	if err != nil {
		t.Fatal(err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex = "ws-pod0", bridge.Attrs().Index
	pod := &netlink.Veth{LinkAttrs: attrs, PeerName: "ws-pod1"}
	if err := netlink.LinkAdd(pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = netlink.LinkDel(pod) })
	if err := next(); err == nil || !strings.Contains(err.Error(), "--bridge-name ws-former") {
		t.Errorf("with a pod: %v", err)
	}
	if n, err := readNetwork(dir); err != nil || n.Bridge != "ws-former" {
		t.Errorf("the record after the refusal: %v, %v", n, err)
	}
	if err := netlink.LinkDel(pod); err != nil {
		t.Fatal(err)
	}
	if err := next(); err != nil {
		t.Errorf("without pods: %v", err)
	}
	if _, err := netlink.LinkByName(former.Bridge); err == nil {
		t.Error("the former bridge is still there")
	}
}
