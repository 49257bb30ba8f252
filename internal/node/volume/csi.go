// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/csi"
)

// errNoCSI is the error where there is no API server.
var errNoCSI = errors.New("CSI volumes need an API server, and this agent has none: use hostPath")

// inline has a driver make a volume that a pod names itself.
func (m *Manager) inline(ctx context.Context, pod *corev1.Pod, v corev1.Volume) error {
	if m.cfg.CSI == nil {
		return errNoCSI
	}
	dir := m.volumeDir(pod.UID, v)
	if done, err := m.isReady(pod, v, dir); err != nil || done {
		return err
	}
	p, err := m.publish(ctx, pod, v, nil, dir)
	if err != nil {
		return err
	}
	return m.finish(ctx, pod, v, dir, p.Group)
}

// publish has the driver make the volume, and shows it in the pod's folder: its place among the kubelet's is the
// driver's.
func (m *Manager) publish(ctx context.Context, pod *corev1.Pod, v corev1.Volume, pv *corev1.PersistentVolume,
	dir string) (csi.Published, error) {
	if m.cfg.CSI == nil {
		return csi.Published{}, errNoCSI
	}
	p, err := m.cfg.CSI.Publish(ctx, csi.Request{Pod: pod, Volume: &v, PV: pv})
	if err != nil {
		return p, err
	}
	if p.Block {
		return p, m.showDevice(pod.UID, v.Name, p.Path)
	}
	if there, err := isMounted(dir); err != nil || there {
		return p, err
	}
	return p, bindPath(p.Path, dir)
}

// isReady reports whether the volume of a claim, or an inline one, needs nothing any more.
func (m *Manager) isReady(pod *corev1.Pod, v corev1.Volume, dir string) (bool, error) {
	if asDevice(pod, v.Name) {
		if _, err := m.device(pod.UID, v.Name); err != nil {
			return false, nil
		}
	} else {
		there, err := isMounted(dir)
		if err != nil || !there {
			return false, err
		}
		// Mounted is not ready: whoever mounted it may have been stopped before its files were the group's.
		if _, err := os.Lstat(readyMark(dir, v)); err != nil {
			return false, nil
		}
	}
	if m.cfg.CSI != nil {
		m.cfg.CSI.Tend(pod, v.Name)
	}
	return true, nil
}

func readyMark(dir string, v corev1.Volume) string {
	return filepath.Join(filepath.Dir(dir), "."+v.Name+".ready")
}
