// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"testing"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

func sandboxCases() []Case {
	return []Case{
		{"the version is CRI v1", testVersion},
		{"a sandbox lives once and its calls are idempotent", testSandboxLife},
		{"a sandbox's name and attempt are reserved", testSandboxName},
		{"stopping a sandbox kills its containers", testStopSandboxKills},
		{"removing a sandbox removes its containers", testRemoveSandboxRemoves},
		{"a stopped sandbox takes no containers", testStoppedSandbox},
		{"PID-03 containers outlive a dead pause when isolated", testPauseDies},
		{"PID-06 containers die with the pause when they share its namespace", testSharedPauseDies},
		{"PID-09 TARGET is an error for a sandbox", testTargetSandbox},
	}
}

func testVersion(t *testing.T, e Env) {
	v, err := e.Client.Version(t.Context())
	if err != nil || v.GetRuntimeName() == "" {
		t.Errorf("Version: %v, %v", v, err)
	}
}

func testSandboxLife(t *testing.T, e Env) {
	p := newPod(t, e)
	r, err := p.client.Runtime.PodSandboxStatus(p.ctx(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: p.sandbox})
	if err != nil {
		t.Fatal(err)
	}
	st := r.GetStatus()
	if st.GetState() != runtimeapi.PodSandboxState_SANDBOX_READY || st.GetCreatedAt() <= 0 ||
		!proto.Equal(st.GetMetadata(), p.config.GetMetadata()) || st.GetLabels()[cri.LabelPodUID] != p.uid {
		t.Errorf("status of a new sandbox: %v", st)
	}
	if hasIP := st.GetNetwork().GetIp() != ""; hasIP == e.HostNetwork {
		t.Errorf("address %q with host network %v", st.GetNetwork().GetIp(), e.HostNetwork)
	}
	for range 2 {
		if _, err := p.client.Runtime.StopPodSandbox(p.ctx(),
			&runtimeapi.StopPodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
			t.Errorf("StopPodSandbox: %v", err)
		}
		if s := p.sandboxState(); s != runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
			t.Errorf("state %v after stop", s)
		}
	}
	for range 2 {
		if _, err := p.client.Runtime.RemovePodSandbox(p.ctx(),
			&runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
			t.Errorf("RemovePodSandbox: %v", err)
		}
	}
	if _,
		err := p.client.Runtime.PodSandboxStatus(p.ctx(),
		&runtimeapi.PodSandboxStatusRequest{PodSandboxId: p.sandbox}); !cri.NotFound(err) {
		t.Errorf("status of a removed sandbox: %v, want NotFound", err)
	}
	if _,
		err := p.client.Runtime.StopPodSandbox(p.ctx(),
		&runtimeapi.StopPodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
		t.Errorf("StopPodSandbox of a removed one: %v", err)
	}
}

func testSandboxName(t *testing.T, e Env) {
	p := newPod(t, e)
	if _,
		err := p.client.Runtime.RunPodSandbox(p.ctx(),
		&runtimeapi.RunPodSandboxRequest{Config: p.config}); !cri.AlreadyExists(err) {
		t.Errorf("the same sandbox twice: %v, want an error that cri.AlreadyExists knows", err)
	}
	next := proto.Clone(p.config).(*runtimeapi.PodSandboxConfig)
	next.Metadata.Attempt = 1
	if _, err := p.client.Runtime.RunPodSandbox(p.ctx(), &runtimeapi.RunPodSandboxRequest{Config: next}); err != nil {
		t.Errorf("the next attempt beside the first: %v", err)
	}
	seen, err := p.client.Observe(p.ctx(), p.uid)
	if err != nil || len(seen.Sandboxes) != 2 || seen.Sandboxes[0].GetMetadata().GetAttempt() != 1 {
		t.Errorf("Observe: %v, %v; want attempts 1 and 0", seen.Sandboxes, err)
	}
	if _,
		err := p.client.Runtime.RemovePodSandbox(p.ctx(),
		&runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
		t.Fatal(err)
	}
	p.run() // the name is free again
}

func testStopSandboxKills(t *testing.T, e Env) {
	p := newPod(t, e)
	id := p.up("main", []string{"ignore_sigterm=true"})
	if _,
		err := p.client.Runtime.StopPodSandbox(p.ctx(),
		&runtimeapi.StopPodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
		t.Fatalf("StopPodSandbox: %v", err)
	}
	if st := p.status(id); st.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED || st.GetExitCode() != 137 {
		t.Errorf("container after StopPodSandbox: %v, exit code %d", st.GetState(), st.GetExitCode())
	}
}

func testRemoveSandboxRemoves(t *testing.T, e Env) {
	p := newPod(t, e)
	running, created := p.up("running", nil), p.create("created", nil)
	if _,
		err := p.client.Runtime.RemovePodSandbox(p.ctx(),
		&runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
		t.Fatalf("RemovePodSandbox: %v", err)
	}
	for _, id := range []string{running, created} {
		if _, err := p.client.Runtime.ContainerStatus(p.ctx(),
			&runtimeapi.ContainerStatusRequest{ContainerId: id}); !cri.NotFound(err) {
			t.Errorf("a container outlived its sandbox: %v", err)
		}
	}
}

func testStoppedSandbox(t *testing.T, e Env) {
	p := newPod(t, e)
	id := p.create("before", nil)
	if _,
		err := p.client.Runtime.StopPodSandbox(p.ctx(),
		&runtimeapi.StopPodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
		t.Fatal(err)
	}
	if _,
		err := p.client.Runtime.StartContainer(p.ctx(),
		&runtimeapi.StartContainerRequest{ContainerId: id}); err == nil {
		t.Error("a container started in a stopped sandbox")
	}
	if _, err := p.client.Runtime.CreateContainer(p.ctx(), p.request("after", nil)); err == nil {
		t.Error("a container was created in a stopped sandbox")
	}
}

func testPauseDies(t *testing.T, e Env) {
	p := newPod(t, e)
	id := p.up("main", nil)
	p.killPause()
	p.until("the sandbox to be not ready",
		func() bool { return p.sandboxState() == runtimeapi.PodSandboxState_SANDBOX_NOTREADY })
	if st := p.status(id); st.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("an isolated container is %v after its pause died", st.GetState())
	}
	p.stop(id, 0)
}

func testSharedPauseDies(t *testing.T, e Env) {
	p := newPod(t, e, sandboxPID(runtimeapi.NamespaceMode_POD))
	id := p.up("main", nil, pidMode(runtimeapi.NamespaceMode_POD, ""))
	p.killPause()
	p.until("the sandbox to be not ready",
		func() bool { return p.sandboxState() == runtimeapi.PodSandboxState_SANDBOX_NOTREADY })
	if st := p.ended(id); st.GetExitCode() != 137 {
		t.Errorf("exit code %d of a container whose PID namespace ended", st.GetExitCode())
	}
}

func testTargetSandbox(t *testing.T, e Env) {
	p := unrunPod(t, e, sandboxPID(runtimeapi.NamespaceMode_TARGET))
	if _,
		err := p.client.Runtime.RunPodSandbox(p.ctx(), &runtimeapi.RunPodSandboxRequest{Config: p.config}); err == nil {
		t.Error("a sandbox with PID mode TARGET was run")
	}
}
