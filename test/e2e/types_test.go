// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"path/filepath"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// TestContainerTypes: the runtime holds of every container what it is of its pod (DC-10).
func TestContainerTypes(t *testing.T) {
	t.Parallel()
	s := shared(t)
	pod := s.Create(WithInit(NewPod("p", Tool("sleep")), Named("init", Tool("exit", "0")), Sidecar(Named("side", Tool("sleep")))))
	s.WaitReady("p")
	s.addDebug("p", debugger("eph", "", Tool("sleep")))
	s.waitDebug("p", "eph", "run", hasRun)
	c, err := cri.Dial(s.Context(), "unix://"+filepath.Join(s.DataDir, "cri.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list, err := c.Runtime.ListContainers(s.Context(), &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.uid": string(pod.UID)}}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range list.GetContainers() {
		got[c.GetMetadata().GetName()] = c.GetLabels()["io.kubernetes.container.type"]
	}
	if want := map[string]string{"init": "INIT", "side": "SIDECAR", "main": "REGULAR", "eph": "EPHEMERAL"}; !maps.Equal(got, want) {
		t.Errorf("DC-10 the types are %v, want %v", got, want)
	}
}
