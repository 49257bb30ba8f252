// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"path/filepath"

	"github.com/containerd/platforms"
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
			"env":        []string{"PATH=" + f.path},
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
			"snapshotter":             c.Snapshotter,
			"pinned_images":           map[string]any{"sandbox": f.pauseImage, "toolbox": toolboxRef},
			"registry":                map[string]any{"config_path": c.HostsDir},
			"discard_unpacked_layers": false, // export needs the layers
			// Without use_local_image_pull only layers have a deadline; a registry that hangs before them is waited for
			// without end.
			"use_local_image_pull":        true,
			"image_pull_progress_timeout": c.PullProgress.String(),
			"stats_collect_period":        60, // s; it walks every container's writable layer
		},
		"io.containerd.cri.v1.runtime": {
			"restrict_oom_score_adj":       f.restrictOOM,
			"netns_mounts_under_state_dir": true,
			"enable_criu":                  false,
			"cdi_spec_dirs":                []string{},
			"disable_hugetlb_controller":   false,
			"stats_collect_period":         "15s", // the default of 1 s would ask every shim every second
			"cni": map[string]any{
				"bin_dirs":              []string{d.bin},
				"conf_dir":              d.cni,
				"max_conf_num":          1,
				"use_internal_loopback": true,
				"ip_pref":               "cni",
			},
			"containerd": map[string]any{
				"default_runtime_name": "runc",
				// The shim is found by PATH (see Runtime.enterPath). With runtime_path containerd would not know it for
				// its own and ask it for its features, a process each time, before every start of a container.
				"runtimes": map[string]any{"runc": map[string]any{
					"runtime_type": "io.containerd.runc.v2",
					"sandboxer":    "podsandbox",
					"options": map[string]any{
						"BinaryName":    filepath.Join(d.bin, "runc"),
						"Root":          d.runc,
						"SystemdCgroup": c.CgroupDriver == "systemd",
					},
				}},
			},
		},
		criPlugin: {
			"disable_tcp_service":   true,
			"stream_server_address": "127.0.0.1", // exec and attach streams, for the node agent only
			"stream_server_port":    "0",
		},
	}
}
