// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"maps"
	"path"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Given is what a container has of its devices, in the CRI's words.
type Given struct {
	Envs        []*runtimeapi.KeyValue
	Mounts      []*runtimeapi.Mount
	Devices     []*runtimeapi.Device
	CDI         []*runtimeapi.CDIDevice
	Annotations map[string]string
}

// given puts answers together; nil for none. Where two say something of the same name or path the first holds, but
// both have to agree on a device.
func given(answers []*plugin.ContainerAllocateResponse) (*Given, error) {
	if len(answers) == 0 {
		return nil, nil
	}
	g := &Given{Annotations: map[string]string{}}
	envs, mounts, devices, cdi := map[string]bool{}, map[string]bool{}, map[string]string{}, map[string]bool{}
	for _, a := range answers {
		for _, name := range slices.Sorted(maps.Keys(a.GetEnvs())) {
			if !envs[name] {
				envs[name] = true
				g.Envs = append(g.Envs, &runtimeapi.KeyValue{Key: name, Value: []byte(a.GetEnvs()[name])})
			}
		}
		for _, mount := range a.GetMounts() {
			if at := path.Clean(mount.GetContainerPath()); !mounts[at] {
				mounts[at] = true
				g.Mounts = append(g.Mounts, &runtimeapi.Mount{ContainerPath: mount.GetContainerPath(),
					HostPath: mount.GetHostPath(), Readonly: mount.GetReadOnly()})
			}
		}
		for _, d := range a.GetDevices() {
			at := path.Clean(d.GetContainerPath())
			if on, has := devices[at]; has {
				if on != d.GetHostPath() {
					return nil, fmt.Errorf("two device plug-ins want different devices at %s: %s and %s", at, on,
						d.GetHostPath())
				}
				continue
			}
			devices[at] = d.GetHostPath()
			g.Devices = append(g.Devices, &runtimeapi.Device{ContainerPath: d.GetContainerPath(),
				HostPath: d.GetHostPath(), Permissions: d.GetPermissions()})
		}
		for _, d := range a.GetCdiDevices() {
			if !cdi[d.GetName()] {
				cdi[d.GetName()] = true
				g.CDI = append(g.CDI, &runtimeapi.CDIDevice{Name: d.GetName()})
			}
		}
		for _, name := range slices.Sorted(maps.Keys(a.GetAnnotations())) {
			if _, has := g.Annotations[name]; !has {
				g.Annotations[name] = a.GetAnnotations()[name]
			}
		}
	}
	return g, nil
}
