// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"syscall"
	"testing"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// TestStuckShim proves RS-05: while the shim of one pod hangs, other pods are evicted as ever, and everybody's figures are there, those of
// that pod the last that were had. Before, nobody was evicted and nobody had figures until it went on.
// ATTACK C5.
func TestStuckShim(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	k := kitOn(t, own(t))
	k.up("metadata: {name: stuck}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	shims, err := k.Server.Processes("shim")
	if err != nil || len(shims) != 1 {
		t.Fatalf("shims: %v, %v", shims, err)
	}
	k.figures("stuck")
	if err := syscall.Kill(shims[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	goOn := func() { _ = syscall.Kill(shims[0], syscall.SIGCONT) }
	t.Cleanup(goOn)
	k.up("metadata: {name: well}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	k.pod("metadata: {name: over}\nspec: {containers: [{name: c, command: [sh, -c, 'dd if=/dev/zero of=/v/f bs=1M count=8 && IDLE'], " +
		"volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, emptyDir: {sizeLimit: 1Mi}}]}")
	k.evicted("over", `Usage of EmptyDir volume "v" exceeds the limit "1Mi".`)
	k.figures("stuck", "well")
	goOn()
	k.figures("stuck", "well")
}

// TestStuckShimIsNamed proves RS-05: a pod that cannot be ended because its shim hangs says so in an event, and ends by itself when the
// shim goes on. Before, nobody but the server's log was told.
func TestStuckShimIsNamed(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	k := kitOn(t, own(t))
	pod := k.up("metadata: {name: stuck}\nspec: {terminationGracePeriodSeconds: 1, containers: [{name: c, command: [sh, -c, IDLE]}]}")
	shims, err := k.Server.Processes("shim")
	if err != nil || len(shims) != 1 {
		t.Fatalf("shims: %v, %v", shims, err)
	}
	k.must(syscall.Kill(shims[0], syscall.SIGSTOP))
	goOn := func() { _ = syscall.Kill(shims[0], syscall.SIGCONT) }
	t.Cleanup(goOn)
	k.Delete("stuck")
	k.WaitEvent("stuck", "FailedKillPod", "error killing pod: stopping container c: ")
	goOn()
	k.WaitGone(pod)
}

// figures expects those of the named pods in the node's summary.
func (k *kit) figures(names ...string) {
	k.t.Helper()
	text, err := k.Server.Client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/" + k.Server.NodeName + "/proxy/stats/summary").DoRaw(k.ctx())
	k.must(err)
	var summary statsapi.Summary
	k.must(json.Unmarshal(text, &summary))
	has := map[string]bool{}
	for _, p := range summary.Pods {
		has[p.PodRef.Name] = p.PodRef.Namespace == k.Namespace && p.Memory != nil && p.Memory.WorkingSetBytes != nil && *p.Memory.WorkingSetBytes > 0
	}
	for _, name := range names {
		if !has[name] {
			k.t.Errorf("there are no figures of pod %s:\n%s", name, text)
		}
	}
}
