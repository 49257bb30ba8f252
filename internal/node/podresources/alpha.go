// SPDX-License-Identifier: Apache-2.0

package podresources

import (
	"context"

	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
)

// alphaLister answers in the words of v1alpha1, which a kubelet still does at the same socket for monitoring that was
// built before v1 (pkg/kubelet/apis/podresources/server_v1alpha1.go).
type alphaLister struct {
	v1alpha1.UnimplementedPodResourcesListerServer
	now *lister
}

// List lists all pods with their devices, which is all that v1alpha1 tells of. Containers are those of v1: with
// sidecars, which a kubelet leaves out here.
func (l *alphaLister) List(ctx context.Context,
	_ *v1alpha1.ListPodResourcesRequest) (*v1alpha1.ListPodResourcesResponse, error) {
	all, err := l.now.List(ctx, &podresourcesapi.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.ListPodResourcesResponse{}
	for _, p := range all.GetPodResources() {
		pod := &v1alpha1.PodResources{Name: p.GetName(), Namespace: p.GetNamespace()}
		for _, c := range p.GetContainers() {
			pod.Containers = append(pod.Containers,
				&v1alpha1.ContainerResources{Name: c.GetName(), Devices: alphaWords(c.GetDevices())})
		}
		out.PodResources = append(out.PodResources, pod)
	}
	return out, nil
}

func alphaWords(devices []*podresourcesapi.ContainerDevices) (out []*v1alpha1.ContainerDevices) {
	for _, d := range devices {
		out = append(out, &v1alpha1.ContainerDevices{ResourceName: d.GetResourceName(), DeviceIds: d.GetDeviceIds()})
	}
	return out
}
