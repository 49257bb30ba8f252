// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"path/filepath"
	"strings"
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

// TestTargetOfSandbox: a sandbox has no target to share processes with; the runtime says so, and nothing is left (PID-09).
func TestTargetOfSandbox(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("p", Tool("sleep")))
	s.WaitReady("p")
	c, err := cri.Dial(s.Context(), "unix://"+filepath.Join(s.DataDir, "cri.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "target", Namespace: s.Namespace, Uid: "pid-09-" + s.Namespace},
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{
			Network: runtimeapi.NamespaceMode_NODE, Pid: runtimeapi.NamespaceMode_TARGET, TargetId: "somebody"}}},
	}
	r, err := c.Runtime.RunPodSandbox(s.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	if err == nil {
		t.Errorf("PID-09 a sandbox was made: %s", r.GetPodSandboxId())
		_, err = c.Runtime.RemovePodSandbox(s.Context(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: r.GetPodSandboxId()})
		t.Error(err)
		return
	}
	if text := cri.Message(err); !strings.Contains(text, "TARGET") {
		t.Errorf("PID-09 the error does not name the mode: %s", text)
	}
	list, err := c.Runtime.ListPodSandbox(s.Context(), &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, box := range list.GetItems() {
		if box.GetMetadata().GetUid() == config.Metadata.Uid {
			t.Errorf("PID-09 it is left: %+v", box)
		}
	}
}
