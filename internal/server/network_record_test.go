// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

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
