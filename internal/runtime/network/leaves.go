// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// Who asks for a node port on this machine's 127.0.0.1 may be led to a pod on another node. Such packets may leave by a
// device only with its route_localnet, which by itself would also let in packets from there to what listens on loopback
// alone. So these devices have a guard, which is there before and after; and they are on record, since a device's
// parameter does not say who has set it.

// leavesFile is where the devices are on record.
func leavesFile(c Config) string { return filepath.Join(c.StateDir, "leaves") }

// leaves are the devices whose route_localnet is on because of us.
func leaves(c Config) (out []string, err error) {
	if c.StateDir == "" {
		return nil, nil
	}
	text, err := os.ReadFile(leavesFile(c))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("pod network: %s: %w", leavesFile(c), err)
	}
	return out, nil
}

// noteLeaves puts devices on record, in one step.
func noteLeaves(c Config, devices []string) error {
	if len(devices) == 0 {
		return removeIfThere(leavesFile(c))
	}
	text, err := json.Marshal(devices)
	if err != nil {
		return err
	}
	tmp := leavesFile(c) + ".new"
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return fmt.Errorf("pod network: %w", err)
	}
	return os.Rename(tmp, leavesFile(c))
}

// leave lets packets from 127.0.0.1 leave by these devices, and by no others.
func leave(c Config, devices []string) error {
	before, err := leaves(c)
	if err != nil {
		before = nil // a record that cannot be read is made anew
	}
	var want []string
	for _, d := range devices { // one that was on before is somebody else's
		if slices.Contains(before, d) || !isOn("ipv4", "conf", d, "route_localnet") {
			want = append(want, d)
		}
	}
	gone := slices.DeleteFunc(slices.Clone(before), func(d string) bool { return slices.Contains(want, d) })
	if err := noteLeaves(c, append(slices.Clone(want), gone...)); err != nil {
		return err
	}
	if !slices.Equal(before, want) {
		if err := guardLeaves(c, append(slices.Clone(want), gone...)); err != nil {
			return err
		}
	}
	for _, d := range want {
		if err := sysctl("1", "ipv4", "conf", d, "route_localnet"); err != nil {
			return err
		}
	}
	return comeBack(c, gone, want)
}

// comeBack closes devices that packets need not leave by any more, and only then takes their guard away.
func comeBack(c Config, gone, want []string) error {
	if len(gone) == 0 {
		return nil
	}
	for _, d := range gone {
		if err := sysctl("0", "ipv4", "conf", d, "route_localnet"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := guardLeaves(c, want); err != nil {
		return err
	}
	return noteLeaves(c, want)
}

// guardLeaves installs the guard of these devices, in place of the one before.
func guardLeaves(c Config, devices []string) error {
	t, err := openTable(c.Bridge)
	if err != nil {
		return err
	}
	defer t.close()
	t.conn.AddTable(t.t)
	t.guardNodes(devices)
	if err := t.conn.Flush(); err != nil {
		return fmt.Errorf("nftables: guard of %v: %w", devices, err)
	}
	return nil
}

// guardNodes drops what comes in by a device and pretends to be of loopback, or asks for it.
func (t *table) guardNodes(devices []string) {
	rule := t.chain("guard-nodes", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityRaw)
	f := ipv4()
	for _, d := range devices {
		for _, at := range []uint32{f.dstAt, f.srcAt} {
			rule(device(expr.MetaKeyIIFNAME, expr.CmpOpEq, d), isFamily(f), within(f, at, f.loopback, true),
				verdict(expr.VerdictDrop, ""))
		}
	}
}

// left reports whether the devices on record are open still.
func left(c Config) (bool, error) {
	devices, err := leaves(c)
	for _, d := range devices {
		if _, serr := os.Stat(sysctlPath("ipv4", "conf", d)); serr == nil && !isOn("ipv4", "conf", d,
			"route_localnet") {
			return false, nil
		}
	}
	return true, err
}

// closeLeaves closes all devices on record: the network goes.
func closeLeaves(c Config) error {
	devices, err := leaves(c)
	if err != nil || len(devices) == 0 {
		return err
	}
	for _, d := range devices {
		if err := sysctl("0", "ipv4", "conf", d, "route_localnet"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return noteLeaves(c, nil)
}
