// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"time"
)

// Snapshotters a Config may name.
const (
	Overlayfs = "overlayfs" // one mount over shared layers; needs the kernel's overlayfs
	Native    = "native"    // a full copy of every layer; slow and large, works everywhere
)

// Shims a Config may name.
const (
	OwnShim   = "wherry" // one process of ours for each pod, and no pause container (io.containerd.wherry.v1)
	StockShim = "stock"  // containerd's own (io.containerd.runc.v2)
)

// Config says how to run the runtime. Only DataDir is required.
type Config struct {
	// DataDir is the absolute path of the folder below which everything is kept.
	DataDir string
	// BridgeName is the name of this node's network bridge (at most 15 characters).
	BridgeName string
	// PodCIDRs are the networks pods get their addresses from: one IPv4, optionally one IPv6. Empty: no pod network
	// is set up, and only pods on the host's network can run.
	PodCIDRs []string
	// CNIConfDir and CNIBinDirs are where CNI plug-ins are configured, and are, that make the pod network in place of
	// PodCIDRs, which are empty then. Absolute paths; the configuration may come and change at any time.
	CNIConfDir string
	CNIBinDirs []string
	// PullProgress is how long a pull may go on without a byte of the registry; 0: a minute.
	PullProgress time.Duration
	// HostsDir is the registry configuration folder, laid out as containerd has it (<registry>/hosts.toml).
	// Default: <DataDir>/registries.
	HostsDir string
	// CgroupDriver is "cgroupfs" (default) or "systemd".
	CgroupDriver string
	// Snapshotter is Overlayfs (default), Native, or NAME=SOCKET: one that is a program of its own, which may have
	// layers without their being downloaded, as containerd's proxy_plugins.
	Snapshotter string
	// Shim is OwnShim (default) or StockShim: what new pods are run by. Pods that run already are served by what they
	// were started with.
	Shim string
	// NoSync lets the metadata database skip fsync: pods start about a third faster, but a power cut can cost all
	// images and containers of this data folder. For data folders that are thrown away anyway.
	NoSync bool
	// Logger gets containerd's warnings and errors. Default: slog.Default().
	Logger *slog.Logger

	snapshotterSocket string // of one that is a program of its own; set by complete, which leaves Snapshotter its name
}

// complete checks a Config and fills in the defaults.
func (c Config) complete() (Config, error) {
	if c.DataDir == "" || !filepath.IsAbs(c.DataDir) {
		return c, fmt.Errorf("data folder %q: the runtime needs an absolute path", c.DataDir)
	}
	c.DataDir = filepath.Clean(c.DataDir)
	if c.DataDir == "/" {
		return c, errors.New("data folder: / cannot be the data folder")
	}
	if c.PullProgress == 0 {
		c.PullProgress = time.Minute
	}
	if c.HostsDir == "" {
		c.HostsDir = filepath.Join(c.DataDir, "registries")
	}
	switch c.CgroupDriver {
	case "":
		c.CgroupDriver = "cgroupfs"
	case "cgroupfs", "systemd":
	default:
		return c, fmt.Errorf("cgroup driver %q: use cgroupfs or systemd", c.CgroupDriver)
	}
	if c.Snapshotter == "" {
		c.Snapshotter = Overlayfs
	}
	var err error
	if c.Snapshotter, c.snapshotterSocket, err = ParseSnapshotter(c.Snapshotter); err != nil {
		return c, err
	}
	switch c.Shim {
	case "":
		c.Shim = OwnShim
	case OwnShim, StockShim:
	default:
		return c, fmt.Errorf("runtime %q: use %s or %s", c.Shim, OwnShim, StockShim)
	}
	if _, err := c.prefixes(); err != nil {
		return c, err
	}
	if c.CNIConfDir != "" && len(c.PodCIDRs) > 0 {
		return c, errors.New("pod network: it is the CNI plug-ins' or made here, not both")
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, nil
}

// prefixes parses PodCIDRs.
func (c Config) prefixes() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range c.PodCIDRs {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("pod network %q: %w", s, err)
		}
		out = append(out, p)
	}
	if len(out) > 0 && (c.BridgeName == "" || len(c.BridgeName) > 15) {
		return nil, fmt.Errorf("bridge name %q: a pod network needs a bridge name of 1 to 15 characters", c.BridgeName)
	}
	return out, nil
}
