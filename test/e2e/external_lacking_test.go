// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/test/images"
)

// onLacking is a kit on a server of the test's own, on a runtime that lacks what refuse says.
func onLacking(t *testing.T, refuse func(call string, request []byte) error) (*kit, *lackingRuntime, string) {
	t.Helper()
	needBusybox(t)
	d := StartContainerd(t)
	d.Load(t, world(t))
	socket := filepath.Join(d.dir, "lacking.sock")
	p, err := newLackingRuntime(socket, d.socket)
	if err != nil {
		t.Fatal(err)
	}
	p.refuse.Store(&refuse)
	t.Cleanup(p.close)
	return inDefault(t, own(t, ServerOptions{NoImages: true, Args: []string{"--container-runtime-endpoint", "unix://" + socket}})), p, socket
}

// pidOf is the PID namespace mode that a call asks for; CONTAINER if it asks for nothing of the kind.
func pidOf(call string, request []byte) runtimeapi.NamespaceMode {
	switch call {
	case "CreateContainer":
		r := &runtimeapi.CreateContainerRequest{}
		if proto.Unmarshal(request, r) == nil {
			return r.GetConfig().GetLinux().GetSecurityContext().GetNamespaceOptions().GetPid()
		}
	case "RunPodSandbox":
		r := &runtimeapi.RunPodSandboxRequest{}
		if proto.Unmarshal(request, r) == nil {
			return r.GetConfig().GetLinux().GetSecurityContext().GetNamespaceOptions().GetPid()
		}
	}
	return runtimeapi.NamespaceMode_CONTAINER
}

// TestRuntimeWithoutTarget: EC-25, PID-11: on a runtime without namespace targeting, whichever way it says so, the debug container's
// status names TARGET and nothing else of the pod changes; debug containers without a target run. What such a runtime has no way for is
// not implemented, with what is missing, and leaves nothing (IX-12, DC-17).
func TestRuntimeWithoutTarget(t *testing.T) {
	t.Parallel()
	said := status.Error(codes.Unknown, "failed to generate container spec: unsupported namespace mode: 3")
	refuse := func(call string, request []byte) error {
		if pidOf(call, request) == runtimeapi.NamespaceMode_TARGET {
			return said
		}
		return nil
	}
	k, p, socket := onLacking(t, refuse)
	k.up(`{metadata: {name: web}, spec: {hostNetwork: true, containers: [{name: main, image: tool, args: [sleep]}]}}`)
	before := facts(k.Get("web"))
	namesTarget := func(c *corev1.ContainerStatus) bool {
		return waitsFor("CreateContainerError")(c) && strings.Contains(c.State.Waiting.Message, "TARGET")
	}
	k.addDebug("web", debugger("words", "main", Sh(Idle)))
	k.waitDebug("web", "words", "refused with TARGET named", namesTarget)
	unimplemented := func(call string, request []byte) error {
		if pidOf(call, request) == runtimeapi.NamespaceMode_TARGET {
			return status.Error(codes.Unimplemented, "not supported")
		}
		return nil
	}
	p.refuse.Store(&unimplemented)
	k.addDebug("web", debugger("code", "main", Sh(Idle)), debugger("untargeted", "", Sh(Idle)))
	k.waitDebug("web", "code", "refused with TARGET named", namesTarget)
	k.waitDebug("web", "untargeted", "run", isRunning)
	k.says("web", "untargeted", "echo here", "here")
	if after := facts(k.Get("web")); after != before {
		t.Errorf("EC-25 the rest of the pod is\n%s\nand was\n%s", after, before)
	}
	if r := k.wherry(nil, "debug", "web", "-m", images.BusyboxRef, "-c", "mine", "--", "true"); r.Code == 0 || !strings.Contains(r.Err, "TARGET") {
		t.Errorf("EC-25 wherry debug ended with %d: %s", r.Code, r.Err)
	}

	for want, args := range map[string][]string{
		"not implemented":                         {"exec", "web", "-m", images.BusyboxRef, "--", "true"},
		socket + " serves only the CRI":           {"cp", "web:/etc/hosts", t.TempDir()},
		"which can load it only into containerd ": {"debug", "web", "-c", "toolbox", "-m", "wherry.dev/toolbox"},
	} {
		if r := k.wherry(nil, args...).exits(1); !strings.Contains(r.Err, want) {
			t.Errorf("IX-12 DC-17 %s: its message lacks %q: %s", r.Line, want, r.Err)
		}
	}
	var names []string
	after := k.Get("web")
	for i := range after.Status.EphemeralContainerStatuses {
		names = append(names, after.Status.EphemeralContainerStatuses[i].Name)
	}
	if now := facts(after); now != before || !slices.Equal(names, []string{"words", "code", "untargeted", "mine", "toolbox"}) {
		t.Errorf("IX-12 after what was refused the pod is\n%s\nand was\n%s; its debug containers are %q", now, before, names)
	}
	if left, err := filepath.Glob(filepath.Join(k.DataDir, "imageexec", "*")); err != nil || len(left) > 0 {
		t.Errorf("IX-12 left: %v, %v", left, err)
	}
}

// TestRuntimeWithoutModes: PID-11: a pod with a PID namespace mode that the runtime does not have says so; others run.
func TestRuntimeWithoutModes(t *testing.T) {
	t.Parallel()
	k, _, _ := onLacking(t, func(call string, request []byte) error {
		switch {
		case call != "RunPodSandbox":
			return nil
		case pidOf(call, request) == runtimeapi.NamespaceMode_POD:
			return status.Error(codes.InvalidArgument, "invalid namespace mode")
		case pidOf(call, request) == runtimeapi.NamespaceMode_NODE:
			return status.Error(codes.Unimplemented, "not supported")
		}
		return nil
	})
	k.pod(`{metadata: {name: shared}, spec: {hostNetwork: true, shareProcessNamespace: true, containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	k.pod(`{metadata: {name: node}, spec: {hostNetwork: true, hostPID: true, containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	k.up(`{metadata: {name: own}, spec: {hostNetwork: true, containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	for pod, mode := range map[string]string{"shared": "POD", "node": "NODE"} {
		k.Wait(pod, "say that "+mode+" is not supported", func(p *corev1.Pod) bool {
			c := Status(p, "main")
			return c != nil && c.State.Waiting != nil && strings.Contains(c.State.Waiting.Message, mode)
		})
		k.WaitEvent(pod, "FailedCreatePodSandBox", mode)
	}
}

// TestRuntimeWithoutCalls: a runtime that does not know newer calls runs pods all the same. One without events is asked for its lists
// instead, so that an end is noticed, and that is said once, also when the runtime was away (PL-15).
func TestRuntimeWithoutCalls(t *testing.T) {
	t.Parallel()
	unknown := []string{"GetContainerEvents", "UpdateContainerResources", "UpdatePodSandboxResources", "RuntimeConfig", "ListPodSandboxStats", "PodSandboxStats",
		"ListMetricDescriptors", "ListPodSandboxMetrics", "CheckpointContainer", "UpdateRuntimeConfig"}
	refuse := func(call string, _ []byte) error {
		if slices.Contains(unknown, call) {
			return status.Errorf(codes.Unimplemented, "unknown method %s for service runtime.v1.RuntimeService", call)
		}
		return nil
	}
	k, p, socket := onLacking(t, refuse)
	k.up(`{metadata: {name: p}, spec: {hostNetwork: true, containers: [{name: c, command: [sh, -c, "echo up; IDLE"]}]}}`)
	k.awaitLog("p", "c", "up\n")
	k.stop1("p", "c")
	k.WaitRestarts("p", "c", 1)
	k.addDebug("p", debugger("d", "c", Sh("exit 3")))
	if end := k.waitDebug("p", "d", "ended", hasEnded).State.Terminated; end.ExitCode != 3 {
		t.Errorf("it ended as %+v", end)
	}
	p.stop()
	k.must(p.open())
	c, err := cri.Dial(k.ctx(), "unix://"+socket)
	k.must(err)
	defer c.Close()
	list, err := c.Runtime.ListContainers(k.ctx(), &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}})
	k.must(err)
	for _, x := range list.GetContainers() {
		_, err := c.Runtime.StopContainer(k.ctx(), &runtimeapi.StopContainerRequest{ContainerId: x.GetId(), Timeout: 10})
		k.must(err)
	}
	k.WaitRestarts("p", "c", 2)
	if n := strings.Count(k.Log(), "has no container events"); n != 1 {
		t.Errorf("PL-15 it is said %d times that there are no events", n)
	}
}
