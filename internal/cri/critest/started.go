// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// Started has the fake run the container "app" of the image "app" in the pod shop/web (UID u1), for tests that need
// some container to work on, and returns its id.
func (f *Fake) Started(t testing.TB) string {
	t.Helper()
	c := f.Client()
	config := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "shop",
		Uid: "u1"}}
	s, err := c.Runtime.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Runtime.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: s.GetPodSandboxId(), SandboxConfig: config,
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: "app"},
			Labels: map[string]string{cri.LabelPodUID: "u1", cri.LabelContainerName: "app"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _,
		err := c.Runtime.StartContainer(t.Context(),
		&runtimeapi.StartContainerRequest{ContainerId: r.GetContainerId()}); err != nil {
		t.Fatal(err)
	}
	return r.GetContainerId()
}
