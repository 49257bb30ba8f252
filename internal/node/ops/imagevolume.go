// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imageVolumes lists the images that the container has mounted, each volume once, in the order of its mounts. (Pure.)
func imageVolumes(pod *corev1.Pod, c *corev1.Container) (out []*corev1.ImageVolumeSource) {
	for i := range c.VolumeMounts {
		at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == c.VolumeMounts[i].Name })
		if at < 0 || pod.Spec.Volumes[at].Image == nil || slices.Contains(out, pod.Spec.Volumes[at].Image) {
			continue
		}
		out = append(out, pod.Spec.Volumes[at].Image)
	}
	return out
}

// resolveImages has the runtime mount the very images that were checked when they were pulled, by their ids.
func (r *Runner) resolveImages(ctx context.Context, mounts []*runtimeapi.Mount) error {
	for _, m := range mounts {
		if m.GetImage() == nil {
			continue
		}
		img, err := r.imageOf(ctx, m.GetImage().GetImage())
		if err != nil {
			return err
		}
		m.Image = &runtimeapi.ImageSpec{Image: img.GetId(), UserSpecifiedImage: m.GetImage().GetImage()}
	}
	return nil
}

// createRequest makes a container in the runtime. Runtimes mount an image once for all containers of a pod, and expect
// them to be made one after the other: those of one pod that have images mounted wait for one another.
func (r *Runner) createRequest(ctx context.Context, pod *corev1.Pod,
	req *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	if slices.ContainsFunc(req.GetConfig().GetMounts(), func(m *runtimeapi.Mount) bool { return m.GetImage() != nil }) {
		leave, err := r.mounting.enter(ctx, pod.UID)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	return r.CRI.Runtime.CreateContainer(ctx, req)
}

// volumeImage is an error about an image that is not the container's own.
type volumeImage struct {
	image string
	err   error
}

func (v *volumeImage) Error() string     { return v.err.Error() }
func (v *volumeImage) Unwrap() error     { return v.err }
func (v *volumeImage) ImageName() string { return v.image }
