// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/node/env"
)

// Mounts gives the container's mounts as the runtime takes them, in the order of the spec. Prepare must have been done.
// Sub-paths are resolved and bound anew, so it is to be called for each attempt, when no earlier attempt of the
// container runs any more. /etc/hosts and the termination log are not among them: see EtcHosts and TerminationLog.
// vars is the container's environment, of which a subPathExpr may ask. Every error is a *MountError.
func (m *Manager) Mounts(ctx context.Context, pod *corev1.Pod, c *corev1.Container,
	vars []*runtimeapi.KeyValue) ([]*runtimeapi.Mount, error) {
	defer m.locks.take(pod.UID)()
	var out []*runtimeapi.Mount
	for i := range c.VolumeMounts {
		vm := &c.VolumeMounts[i]
		mount, err := m.mount(ctx, pod, c, i, vars)
		if err != nil {
			return nil, &MountError{Container: c.Name, Path: vm.MountPath, Err: err}
		}
		out = append(out, mount)
	}
	return out, nil
}

func (m *Manager) mount(ctx context.Context, pod *corev1.Pod, c *corev1.Container, index int,
	vars []*runtimeapi.KeyValue) (*runtimeapi.Mount, error) {
	vm := &c.VolumeMounts[index]
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == vm.Name })
	if i < 0 {
		return nil, fmt.Errorf("the pod has no volume %q", vm.Name)
	}
	v := pod.Spec.Volumes[i]
	out := &runtimeapi.Mount{
		ContainerPath: path.Join("/", vm.MountPath),
		HostPath:      m.volumeDir(pod.UID, v),
		// what the API holds is not changed by writing here
		Readonly: vm.ReadOnly || isFiles(v.VolumeSource) || readOnlyClaim(&v) || v.NFS != nil && v.NFS.ReadOnly ||
			v.CSI != nil && isTrue(v.CSI.ReadOnly),
		Propagation: propagation(vm.MountPropagation),
	}
	if v.Image != nil {
		out.HostPath, out.Readonly, out.Image = "", true, &runtimeapi.ImageSpec{Image: v.Image.Reference}
	}
	var err error
	if out.RecursiveReadOnly, err = m.recursive(vm, out); err != nil {
		return nil, err
	}
	sub := vm.SubPath
	if vm.SubPathExpr != "" {
		if sub, err = env.ExpandStrict(vm.SubPathExpr, vars); err != nil {
			return nil, fmt.Errorf("subPathExpr %q: %w", vm.SubPathExpr, err)
		}
	}
	if sub == "" {
		return out, nil
	}
	if err := checkSubPath(sub); err != nil {
		return nil, err
	}
	if v.Image != nil { // the runtime looks for it in the image, and takes folders only
		out.ImageSubPath = sub
		return out, nil
	}
	out.HostPath, err = m.bindSubPath(ctx, pod.UID, v, c.Name, index, sub)
	return out, err
}

// recursive decides recursiveReadOnly; out has readonly and propagation already.
func (m *Manager) recursive(vm *corev1.VolumeMount, out *runtimeapi.Mount) (bool, error) {
	mode := corev1.RecursiveReadOnlyDisabled
	if vm.RecursiveReadOnly != nil {
		mode = *vm.RecursiveReadOnly
	}
	switch {
	case mode == corev1.RecursiveReadOnlyDisabled || (mode == corev1.RecursiveReadOnlyIfPossible &&
		!m.cfg.RecursiveReadOnly):
		return false, nil
	case mode != corev1.RecursiveReadOnlyIfPossible && mode != corev1.RecursiveReadOnlyEnabled:
		return false, fmt.Errorf("unknown recursiveReadOnly %q", mode)
	case !vm.ReadOnly:
		return false, fmt.Errorf("recursiveReadOnly %s needs readOnly: true", mode)
	case out.Propagation != runtimeapi.MountPropagation_PROPAGATION_PRIVATE:
		return false, fmt.Errorf("recursiveReadOnly %s needs mountPropagation None", mode)
	case !m.cfg.RecursiveReadOnly:
		return false,
			errors.New("recursiveReadOnly Enabled: the container runtime cannot make mounts read-only recursively; use IfPossible")
	}
	return true, nil
}

func propagation(p *corev1.MountPropagationMode) runtimeapi.MountPropagation {
	if p != nil {
		switch *p {
		case corev1.MountPropagationHostToContainer:
			return runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
		case corev1.MountPropagationBidirectional:
			return runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
		}
	}
	return runtimeapi.MountPropagation_PROPAGATION_PRIVATE
}

func checkSubPath(sub string) error {
	if path.IsAbs(sub) || slices.Contains(strings.Split(sub, "/"), "..") {
		return fmt.Errorf("subPath %q must be relative and must not contain '..'", sub)
	}
	return nil
}
