// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/node/devices"
)

// TestContainerDevices proves PL-34: what device plug-ins have answered is in what the runtime is asked for, names of CDI
// devices too, and what the container's spec says holds against it.
func TestContainerDevices(t *testing.T) {
	p := basePod(nil)
	c, err := ContainerConfig(ContainerInput{Pod: p, Container: &p.Spec.Containers[0], Image: &runtimeapi.Image{Id: "sha256:1"},
		Env:    []*runtimeapi.KeyValue{{Key: "A", Value: []byte("spec")}},
		Mounts: []*runtimeapi.Mount{{ContainerPath: "/lib/x/", HostPath: "/spec"}},
		Devices: &devices.Given{Envs: []*runtimeapi.KeyValue{{Key: "A", Value: []byte("plug-in")}},
			Mounts:      []*runtimeapi.Mount{{ContainerPath: "/lib/x", HostPath: "/vendor"}, {ContainerPath: "/lib/y", HostPath: "/vendor"}},
			Devices:     []*runtimeapi.Device{{ContainerPath: "/dev/x", HostPath: "/dev/x0"}},
			CDI:         []*runtimeapi.CDIDevice{{Name: "nvidia.com/gpu=0"}, {Name: "nvidia.com/gpu=1"}},
			Annotations: map[string]string{"v": "1", annotationImage: "other"}},
		BlockDevices: []*runtimeapi.Device{{ContainerPath: "/dev/block", HostPath: "/dev/sdb"}}})
	if err != nil {
		t.Fatal(err)
	}
	if cdi := c.GetCDIDevices(); len(cdi) != 2 || cdi[0].GetName() != "nvidia.com/gpu=0" || cdi[1].GetName() != "nvidia.com/gpu=1" {
		t.Errorf("CDI devices %v", cdi)
	}
	if d := c.GetDevices(); len(d) != 2 || d[0].GetHostPath() != "/dev/x0" || d[1].GetHostPath() != "/dev/sdb" {
		t.Errorf("devices %v", d)
	}
	if e := c.GetEnvs(); len(e) != 2 || string(e[1].GetValue()) != "spec" { // the last one holds
		t.Errorf("environment %v", e)
	}
	if m := c.GetMounts(); len(m) != 2 || m[0].GetHostPath() != "/spec" || m[1].GetContainerPath() != "/lib/y" {
		t.Errorf("mounts %v", m)
	}
	if a := c.GetAnnotations(); a["v"] != "1" || a[annotationImage] != "img" {
		t.Errorf("annotations %v", a)
	}
}
