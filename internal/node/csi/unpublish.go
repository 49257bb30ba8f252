// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/moby/sys/mountinfo"
	"k8s.io/apimachinery/pkg/types"
)

// Unpublish takes back all volumes of a pod. It can be repeated; a pod without any is a success.
func (m *Manager) Unpublish(ctx context.Context, uid types.UID) error {
	m.mu.Lock()
	volumes := slices.Sorted(maps.Keys(m.uses[uid]))
	m.mu.Unlock()
	var errs []error
	for _, volume := range volumes {
		m.leaveAlone(uid, volume)
		if err := m.unpublish(ctx, uid, volume); err != nil {
			errs = append(errs, fmt.Errorf("UnmountVolume.TearDown failed for volume %q : %w", volume, err))
		}
	}
	m.mu.Lock()
	delete(m.waiting, uid)
	if len(errs) > 0 {
		m.waiting[uid] = true
	}
	m.mu.Unlock()
	return errors.Join(errs...)
}

// unpublish takes back one volume: its publication, then, with the last pod of the node, its staging.
func (m *Manager) unpublish(ctx context.Context, uid types.UID, volume string) error {
	u, has := m.use(uid, volume)
	if !has {
		return nil
	}
	release, err := m.turns.take(ctx, u.unique())
	if err != nil {
		return err
	}
	defer release()
	if u, has = m.use(uid, volume); !has {
		return nil
	}
	if u.Target == "" && u.Staging == "" {
		return m.forget(uid, volume, &u)
	}
	d, err := m.connected(ctx, u.Driver)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return fmt.Errorf("CSI driver %s is not registered on this node: the volume stays until it is; start the driver's "+
			"pod, or, to give the volume up, unmount what is at %s and remove %s", u.Driver,
			strings.TrimSpace(u.Target+" "+u.Staging), m.file(uid))
	}
	if u.Target != "" && !u.Gone {
		if err := takeBack(ctx, d, &u); err != nil {
			return err
		}
		u.Gone = true
		if err := m.keep(uid, volume, u); err != nil {
			return err
		}
	}
	if asked, _ := m.stagedBy(uid, volume, &u); u.Staging != "" && !asked {
		if err := unstage(ctx, d, &u); err != nil {
			return err
		}
	}
	return m.forget(uid, volume, &u)
}

func (m *Manager) forget(uid types.UID, volume string, u *use) error {
	err := m.drop(uid, volume)
	if err == nil && u.Attach {
		m.cfg.Changed()
	}
	return err
}

func takeBack(ctx context.Context, d *driver, u *use) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := d.node.NodeUnpublishVolume(ctx,
		&spec.NodeUnpublishVolumeRequest{VolumeId: u.Handle, TargetPath: u.Target})
	if err != nil {
		return driverFault(d.name, "NodeUnpublishVolume", err)
	}
	if u.Block { // …/publish/<name>/<uid>
		return removePlace(d.name, u.Target, 2)
	}
	return removePlace(d.name, u.Target, 5) // …/pods/<uid>/volumes/kubernetes.io~csi/<name>/mount
}

func unstage(ctx context.Context, d *driver, u *use) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := d.node.NodeUnstageVolume(ctx,
		&spec.NodeUnstageVolumeRequest{VolumeId: u.Handle, StagingTargetPath: u.Staging})
	if err != nil {
		return driverFault(d.name, "NodeUnstageVolume", err)
	}
	if u.Block { // …/staging/<name>
		return removePlace(d.name, u.Staging, 1)
	}
	return removePlace(d.name, u.Staging, 2) // …/<driver>/<digest>/globalmount
}

// removePlace removes where a volume was, which its driver has left empty, and of the folders above it those that are
// the volume's own. Nothing is removed through a mount.
func removePlace(driver, at string, own int) error {
	there, err := mountinfo.Mounted(at)
	if err == nil && there {
		return fmt.Errorf("CSI driver %s says that it has taken its volume away, but %s is mounted still: it has to mount "+
			"the kubelet's folder with mountPropagation: Bidirectional", driver, at)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for range own {
		if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil // there is something else in it
		}
		at = filepath.Dir(at)
	}
	return nil
}
