// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Devices gives the block devices that a container gets of the pod's claims, in the order of the spec. Prepare must
// have been done. Every error is a *MountError.
func (m *Manager) Devices(pod *corev1.Pod, c *corev1.Container) ([]*runtimeapi.Device, error) {
	defer m.locks.take(pod.UID)()
	var out []*runtimeapi.Device
	for _, d := range c.VolumeDevices {
		i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == d.Name })
		if i < 0 {
			return nil, &MountError{Container: c.Name, Path: d.DevicePath,
				Err: fmt.Errorf("the pod has no volume %q", d.Name)}
		}
		at, err := m.device(pod.UID, d.Name)
		if err != nil {
			return nil, &MountError{Container: c.Name, Path: d.DevicePath, Err: err}
		}
		may := "mrw"
		if readOnlyClaim(&pod.Spec.Volumes[i]) {
			may = "mr"
		}
		out = append(out, &runtimeapi.Device{HostPath: at, ContainerPath: d.DevicePath, Permissions: may})
	}
	return out, nil
}

// asDevice reports whether some container of the pod has the volume as a device.
func asDevice(pod *corev1.Pod, volume string) bool {
	for ref := range podspec.Containers(&pod.Spec) {
		if slices.ContainsFunc(ref.Container.VolumeDevices,
			func(d corev1.VolumeDevice) bool { return d.Name == volume }) {
			return true
		}
	}
	return false
}

// deviceLink is a link to where the device of a block volume is.
func (m *Manager) deviceLink(uid types.UID, volume string) string {
	return filepath.Join(m.cfg.Root, string(uid), "volumeDevices", volume)
}

// device is where the device of a block volume is. After a new start of the machine it may not be there.
func (m *Manager) device(uid types.UID, volume string) (string, error) {
	at, err := os.Readlink(m.deviceLink(uid, volume))
	if err != nil {
		return "", fmt.Errorf("volume %q: %w", volume, err)
	}
	info, err := os.Stat(at)
	if err != nil {
		return "", fmt.Errorf("volume %q: %w", volume, err)
	}
	if info.Mode()&fs.ModeDevice == 0 || info.Mode()&fs.ModeCharDevice != 0 {
		return "", fmt.Errorf("volume %q: %s is not a block device", volume, at)
	}
	return at, nil
}

// showDevice remembers where the device of a block volume is.
func (m *Manager) showDevice(uid types.UID, volume, at string) error {
	link := m.deviceLink(uid, volume)
	if err := os.MkdirAll(filepath.Dir(link), 0o750); err != nil {
		return err
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(at, link); err != nil {
		return err
	}
	_, err := m.device(uid, volume)
	return err
}
