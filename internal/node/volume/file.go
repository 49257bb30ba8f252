// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cyphar/filepath-securejoin/pathrs-lite"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// fileMax bounds what is read of a file that a container wrote.
const fileMax = 1 << 20

// ReadFile reads a file of an emptyDir, at most 1 MiB. Containers write there what they like: symlinks are taken as if
// the volume were the root of all, so that none leads out of it, and nothing but a plain file is opened. For a file
// that does not exist the error is fs.ErrNotExist.
func (m *Manager) ReadFile(pod *corev1.Pod, volume, path string) ([]byte, error) {
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume })
	if i < 0 || pod.Spec.Volumes[i].EmptyDir == nil {
		return nil, fmt.Errorf("the pod has no emptyDir %q", volume)
	}
	root, err := os.OpenFile(m.volumeDir(pod.UID, pod.Spec.Volumes[i]), os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	handle, err := pathrs.OpenatInRoot(root, path)
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	info, err := handle.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("it is not a regular file (%v)", info.Mode().Type())
	case info.Size() > fileMax:
		return nil, fmt.Errorf("it has %d bytes, more than the %d that are read", info.Size(), fileMax)
	}
	f, err := os.OpenFile(procFD(handle), os.O_RDONLY|unix.O_NONBLOCK, 0) // by its handle: it cannot be exchanged
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, fileMax))
}
