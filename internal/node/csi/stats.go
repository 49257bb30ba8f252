// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"fmt"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/apimachinery/pkg/types"
)

// Filling is how full a driver says that a volume is.
type Filling struct{ Bytes, Free, Used, Inodes, InodesFree, InodesUsed uint64 }

// Filling asks the driver of a pod's volume how full that is; false if it does not report that.
func (m *Manager) Filling(ctx context.Context, uid types.UID, volume string) (f Filling, ok bool, err error) {
	u, has := m.use(uid, volume)
	m.mu.Lock()
	d := m.drivers[u.Driver]
	m.mu.Unlock()
	if !has || !u.Published || d == nil || !d.ability.Stats {
		return f, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r, err := d.node.NodeGetVolumeStats(ctx, &spec.NodeGetVolumeStatsRequest{VolumeId: u.Handle, VolumePath: u.Target,
		StagingTargetPath: u.Staging})
	if err != nil {
		return f, false, driverFault(d.name, "NodeGetVolumeStats", err)
	}
	for _, use := range r.GetUsage() {
		total, free, used := use.GetTotal(), use.GetAvailable(), use.GetUsed()
		if total < 0 || free < 0 || used < 0 {
			return f, false, fmt.Errorf("CSI driver %s: NodeGetVolumeStats: a negative number", d.name)
		}
		switch use.GetUnit() {
		case spec.VolumeUsage_BYTES:
			f.Bytes, f.Free, f.Used = uint64(total), uint64(free), uint64(used)
		case spec.VolumeUsage_INODES:
			f.Inodes, f.InodesFree, f.InodesUsed = uint64(total), uint64(free), uint64(used)
		}
	}
	return f, true, nil
}
