// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Claims gives what a pod's claim is bound to: nil for a volume that is not there. A claim that does not exist is an
// error for which apierrors.IsNotFound holds.
type Claims interface {
	Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, error)
}

// claim mounts the persistent volume of a claim at a place of the pod's own. What is mounted there is not looked at
// again: the volume of a claim stays the same, and the API server may be away.
func (m *Manager) claim(ctx context.Context, pod *corev1.Pod, v corev1.Volume) error {
	dir := m.volumeDir(pod.UID, v)
	if done, err := m.isReady(pod, v, dir); err != nil || done {
		return err
	}
	if m.cfg.Claims == nil {
		return errors.New("persistent volumes need an API server, and this agent has none: use hostPath")
	}
	name := podspec.ClaimName(pod, &v)
	claim, pv, err := m.cfg.Claims.Claim(ctx, pod.Namespace, name)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return apierrors.NewNotFound(corev1.Resource("persistentvolumeclaim"), name)
		}
		return fmt.Errorf("persistentvolumeclaim %q: %w", name, err)
	}
	if err := usable(pod, &v, claim, pv); err != nil {
		return err
	}
	// Others' files are not given away, as Kubernetes does it.
	group := !readOnlyClaim(&v) && pv.Spec.HostPath == nil && pv.Spec.NFS == nil
	switch {
	case pv.Spec.CSI != nil:
		p, err := m.publish(ctx, pod, v, pv, dir)
		if err != nil {
			return err
		}
		group = p.Group
	case isBlock(pv):
		return m.localDevice(pod, v, pv)
	default:
		if err := m.mountVolume(ctx, pv, readOnlyClaim(&v), dir); err != nil {
			return fmt.Errorf("persistentvolume %q: %w", pv.Name, err)
		}
	}
	if isBlock(pv) {
		return nil
	}
	return m.finish(ctx, pod, v, dir, group)
}

// finish gives a volume that is mounted to the pod's group, and then says that it is ready.
func (m *Manager) finish(ctx context.Context, pod *corev1.Pod, v corev1.Volume, dir string, group bool) error {
	if gid := fsGroup(pod); gid != nil && group {
		if err := giveToGroup(ctx, dir, *gid, pod.Spec.SecurityContext.FSGroupChangePolicy); err != nil {
			return fmt.Errorf("giving the volume to fsGroup %d: %w", *gid, err)
		}
	}
	return os.WriteFile(readyMark(dir, v), nil, 0o600)
}

func isBlock(pv *corev1.PersistentVolume) bool {
	return ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeBlock
}

// localDevice: the path of a local volume is a device, that is given to the pod as it is.
func (m *Manager) localDevice(pod *corev1.Pod, v corev1.Volume, pv *corev1.PersistentVolume) error {
	if pv.Spec.Local == nil {
		return fmt.Errorf("persistentvolume %q: volumes of volumeMode Block are of the kinds local and csi", pv.Name)
	}
	if err := m.showDevice(pod.UID, v.Name, pv.Spec.Local.Path); err != nil {
		return fmt.Errorf("persistentvolume %q: %w", pv.Name, err)
	}
	return nil
}

// usable says why the pod cannot have the volume of a claim. (Pure.)
func usable(pod *corev1.Pod, v *corev1.Volume, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	switch {
	case !podspec.OwnsClaim(pod, v, claim):
		return fmt.Errorf("PVC %s/%s was not created for pod %s (pod is not owner): rename the volume or delete the claim",
			claim.Namespace, claim.Name, pod.Name)
	case claim.DeletionTimestamp != nil:
		return fmt.Errorf("persistentvolumeclaim %q is being deleted", claim.Name)
	case claim.Spec.VolumeName == "" || claim.Status.Phase != corev1.ClaimBound:
		return fmt.Errorf("persistentvolumeclaim %q is not bound to a volume yet: kubectl describe pvc %s says why",
			claim.Name, claim.Name)
	case pv == nil:
		return fmt.Errorf("persistentvolume %q, which claim %q is bound to, does not exist", claim.Spec.VolumeName,
			claim.Name)
	case pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID:
		return fmt.Errorf("persistentvolume %q is not bound to persistentvolumeclaim %q", pv.Name, claim.Name)
	case isBlock(pv) && !asDevice(pod, v.Name):
		return fmt.Errorf("volume %s has volumeMode Block, but is specified in volumeMounts", v.Name)
	case !isBlock(pv) && asDevice(pod, v.Name):
		return fmt.Errorf("volume %s has volumeMode Filesystem, but is specified in volumeDevices", v.Name)
	}
	return nil
}

// readOnlyClaim: the pod may not write to the volume.
func readOnlyClaim(v *corev1.Volume) bool {
	return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly
}

// mountVolume mounts a persistent volume at dir.
func (m *Manager) mountVolume(ctx context.Context, pv *corev1.PersistentVolume, readOnly bool, dir string) error {
	if pv.Spec.Local != nil { // which takes more than one step
		return mountLocal(ctx, pv, readOnly, dir)
	}
	if there, err := isMounted(dir); err != nil || there {
		return err
	}
	switch s := pv.Spec.PersistentVolumeSource; {
	case s.HostPath != nil:
		if len(pv.Spec.MountOptions) > 0 { // as the kubelet says
			return errors.New("mount options are not supported for this volume type: remove spec.mountOptions, or use local")
		}
		if err := checkHostPath(s.HostPath); err != nil {
			return err
		}
		if _, err := os.Stat(s.HostPath.Path); errors.Is(err, fs.ErrNotExist) { // as the runtime does for a hostPath
			if err := os.MkdirAll(s.HostPath.Path, 0o755); err != nil {
				return err
			}
		}
		return bindPath(s.HostPath.Path, dir)
	case s.NFS != nil:
		theirs := s.NFS.DeepCopy()
		theirs.ReadOnly = theirs.ReadOnly || readOnly
		return mountNFS(ctx, theirs, pv.Spec.MountOptions, dir)
	}
	return errors.New("this node mounts volumes of the kinds local, hostPath, nfs and csi")
}

// bindPath binds what is at a path of the host, and what is mounted below.
func bindPath(from, at string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := mountPoint(at, info.IsDir()); err != nil {
		return err
	}
	if err := unix.Mount(from, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("binding %s: %w", from, err)
	}
	return nil
}

func isMounted(dir string) (bool, error) {
	there, err := mountinfo.Mounted(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return there, err
}

// giveToGroup gives a volume's files to a group, which may read and write them and gets what is made in its folders. A
// volume may be large: with OnRootMismatch its root shows whether that was done before.
func giveToGroup(ctx context.Context, dir string, gid int64, policy *corev1.PodFSGroupChangePolicy) error {
	const (
		forFile   = 0o660
		forFolder = 0o770
	)
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if ptr.Deref(policy, corev1.FSGroupChangeAlways) == corev1.FSGroupChangeOnRootMismatch && groupOf(info) == gid &&
		info.Mode()&(fs.ModeSetgid|forFolder) == fs.ModeSetgid|forFolder {
		return nil
	}
	root, err := os.OpenRoot(dir) // no symlink in the volume leads out of it
	if err != nil {
		return err
	}
	defer root.Close()
	give := func(path string, info fs.FileInfo) error {
		if err := root.Lchown(path, -1, int(gid)); err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return err
		}
		mode := info.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) | forFile
		if info.IsDir() {
			mode |= forFolder | fs.ModeSetgid
		}
		return root.Chmod(path, mode)
	}
	if err := fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || path == "." {
			return err
		}
		info, err := d.Info()
		if err == nil {
			err = give(filepath.FromSlash(path), info)
		}
		if errors.Is(err, fs.ErrNotExist) { // another pod has removed it
			return nil
		}
		return err
	}); err != nil {
		return err
	}
	return give(".", info) // last: it says that all is done
}

// groupOf is the group that a file belongs to, -1 if that is not known.
func groupOf(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(st.Gid)
	}
	return -1
}
