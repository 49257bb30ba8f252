// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"github.com/containerd/cgroups/v3"
	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"
	"google.golang.org/protobuf/proto"

	cgroup1stats "github.com/containerd/cgroups/v3/cgroup1/stats"
)

// stats reads what the container uses, as containerd has it of each version of cgroups. A sandbox uses nothing: its
// process is accounted for with the shim.
func (c *container) stats() (proto.Message, error) {
	if c.spec.sandbox() {
		return &cgroup1stats.Metrics{}, nil
	}
	// Also after its end, until it is deleted: containerd looks then whether it was killed for want of memory.
	path := c.where().below()
	if path == "" {
		return nil, errNoCgroup
	}
	if cgroups.Mode() == cgroups.Unified {
		group, err := cgroup2.Load(path)
		if err != nil {
			return nil, err
		}
		return group.Stat()
	}
	group, err := cgroup1.Load(cgroup1.StaticPath(path))
	if err != nil {
		return nil, err
	}
	return group.Stat(cgroup1.IgnoreNotExist)
}
