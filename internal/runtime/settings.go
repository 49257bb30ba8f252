// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"path/filepath"

	"github.com/containerd/platforms"

	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

// settings are the configuration of containerd's plug-ins, by plug-in, in the words of its configuration file.
type settings map[string]map[string]any

// facts are what was found out about the machine and decided from that.
type facts struct {
	pauseImage  string
	restrictOOM bool   // this process may not lower oom_score_adj
	path        string // PATH for shims
}

// settingsFor decides how containerd is to run.
func settingsFor(c Config, d dirs, f facts) settings {
	return settings{
		"io.containerd.metadata.v1.bolt": {"no_sync": c.NoSync},
		"io.containerd.shim.v1.manager": {
			"socket_dir": d.sockets(),
			"env":        []string{"PATH=" + f.path, "WHERRY_SHIM_SOCKETS=" + d.sockets()},
		},
		"io.containerd.transfer.v1.local": {
			"config_path": c.HostsDir,
			"unpack_config": []map[string]any{{
				"platform":    platforms.Format(platforms.DefaultSpec()),
				"snapshotter": c.Snapshotter,
				"differ":      "walking",
			}},
		},
		imagesPlugin: {
			"snapshotter":                  c.Snapshotter,
			"disable_snapshot_annotations": c.snapshotterSocket == "",
			"pinned_images":                map[string]any{"sandbox": f.pauseImage, "toolbox": toolboxRef},
			"registry":                     map[string]any{"config_path": c.HostsDir},
			"discard_unpacked_layers":      false, // export needs the layers
			// Pulls are package pull's. This is for what the plug-in might pull by itself: without use_local_image_pull
			// only layers have a deadline, and a registry that hangs before them is waited for without end.
			"use_local_image_pull":        true,
			"image_pull_progress_timeout": c.PullProgress.String(),
			"stats_collect_period":        60, // s; it walks every container's writable layer
		},
		"io.containerd.cri.v1.runtime": {
			"restrict_oom_score_adj":       f.restrictOOM,
			"netns_mounts_under_state_dir": true,
			"enable_criu":                  false,
			"cdi_spec_dirs":                cdiFolders(),
			"disable_hugetlb_controller":   false,
			"stats_collect_period":         "15s", // the default of 1 s would ask every shim every second
			"cni":                          networkFor(c, d),
			"containerd": map[string]any{
				"default_runtime_name": "runc",
				"runtimes":             map[string]any{"runc": handlerFor(c, d)},
			},
		},
		criPlugin: {
			"disable_tcp_service":   true,
			"stream_server_address": streamAddress, // nobody gets there: deafenStreams
			"stream_server_port":    "0",
		},
	}
}

// networkFor is where the plug-ins of the pod network are: ours, or those of the cluster. The first file counts, as
// everywhere.
func networkFor(c Config, d dirs) map[string]any {
	bin, conf := []string{d.bin}, d.cni
	if c.CNIConfDir != "" {
		bin, conf = c.CNIBinDirs, c.CNIConfDir
	}
	return map[string]any{"bin_dirs": bin, "conf_dir": conf, "max_conf_num": 1, "use_internal_loopback": true,
		"ip_pref": "cni"}
}

// cdiFolders are where vendors describe devices for runtimes (Container Device Interface): containerd's own and those
// that a kubelet's device plug-ins count on when they answer with the names of devices (PL-34). They are the machine's,
// whatever the data folder. One that is not there yet is looked for again at each container that names a device.
// https://github.com/cncf-tags/container-device-interface#how-to-configure-cdi
func cdiFolders() []string { return []string{"/etc/cdi", "/var/run/cdi"} }

// handlerFor is the one runtime handler. Its type is that of runc's shims whichever runs: containerd knows its options
// by that, and our own has the same.
func handlerFor(c Config, d dirs) map[string]any {
	handler := map[string]any{
		"runtime_type": "io.containerd.runc.v2",
		"runtime_path": "", // that of a start before in the same process would stay
		"sandboxer":    "podsandbox",
		"options": map[string]any{
			"BinaryName":    filepath.Join(d.bin, bundle.Runc),
			"Root":          d.runc,
			"SystemdCgroup": c.CgroupDriver == "systemd",
		},
	}
	if c.Shim == OwnShim {
		handler["runtime_path"] = filepath.Join(d.bin, bundle.Shim)
	}
	return handler // containerd's own is found by PATH (see Runtime.enterPath)
}
