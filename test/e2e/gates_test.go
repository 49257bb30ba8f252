// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// metrics reads a page of metrics, by series.
func (k *kit) metrics(path string) map[string]string {
	k.t.Helper()
	text, err := k.Server.Client.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(k.ctx())
	k.must(err)
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if at := strings.LastIndex(line, " "); at > 0 {
			out[line[:at]] = strings.TrimSpace(line[at+1:])
		}
	}
	return out
}

// TestSidecarGate: SC-18 upgrade and downgrade of one machine, as the sidecar document's test list has it. A pod that runs when
// the gate goes off is rejected by the agent and its containers are stopped; one that waits stays unschedulable; new ones lose
// the field; with the gate on again everything works. SC-23: the agent's metrics tell of it. PID-12: so with process namespaces.
func TestSidecarGate(t *testing.T) {
	t.Parallel()
	k := kitOn(t, own(t))
	const sidecar = "spec: {terminationGracePeriodSeconds: 2, initContainers: [{name: proxy, restartPolicy: Always, command: [sh, -c, IDLE]}], containers: [{name: c, command: [sh, -c, IDLE]}]"
	k.up("metadata: {name: runs}\n" + sidecar + "}")
	k.pod("metadata: {name: waits}\n" + sidecar + ", nodeSelector: {there: is-none}}")
	node := "/api/v1/nodes/" + k.Server.NodeName + "/proxy/metrics"
	m := k.metrics(node)
	for series, want := range map[string]string{
		`kubelet_running_pods`: "1", `kubelet_running_containers{container_state="running"}`: "2",
		`kubelet_started_containers_total{container_type="init_container"}`: "1", `kubelet_started_containers_total{container_type="container"}`: "1",
		`kubelet_pod_start_duration_seconds_count`: "1", `kubelet_pod_start_sli_duration_seconds_count`: "1",
		`kubelet_runtime_operations_total{operation_type="run_podsandbox"}`: "1",
		`kubernetes_feature_enabled{name="SidecarContainers",stage=""}`:     "1",
	} {
		if m[series] != want {
			t.Errorf("SC-23: %s is %q, want %s", series, m[series], want)
		}
	}

	off := func(args ...string) {
		k.must(k.Server.Stop())
		k.Server.opts.Args = args
		k.again()
	}
	off("--feature-gates", "SidecarContainers=false,PodShareProcessNamespace=false")
	p := k.WaitPhase("runs", corev1.PodFailed)
	if p.Status.Reason != "FeatureGateOff" || !strings.Contains(p.Status.Message, "spec.initContainers[0].restartPolicy needs the feature gate SidecarContainers") {
		t.Errorf("the agent rejects it with %q: %s", p.Status.Reason, p.Status.Message)
	}
	k.WaitEvent("waits", "FailedScheduling", "needs the feature gate SidecarContainers, which is off at the scheduler")
	if got := k.metrics(node)[`kubernetes_feature_enabled{name="SidecarContainers",stage=""}`]; got != "0" {
		t.Errorf("/metrics shows the gate as %q", got)
	}
	made := k.pod("metadata: {name: new}\nspec: {initContainers: [{name: proxy, restartPolicy: Always, command: [\"true\"]}], containers: [{name: c, command: [sh, -c, IDLE]}]}")
	if made.Spec.InitContainers[0].RestartPolicy != nil {
		t.Error("a new pod has the field")
	}
	k.WaitReady("new")
	alone := k.pod("metadata: {name: alone}\nspec: {shareProcessNamespace: true, containers: [{name: c, command: [sh, -c, IDLE]}]}")
	if alone.Spec.ShareProcessNamespace != nil {
		t.Error("PID-12 a new pod has the field")
	}
	k.WaitReady("alone")
	k.says("alone", "c", "while grep -q runc /proc/1/comm; do usleep 20000; done; cat /proc/1/comm", "sh")

	off()
	k.up("metadata: {name: again}\n" + sidecar + "}")
	if k.Get("waits").Spec.InitContainers[0].RestartPolicy == nil {
		t.Error("the pod that waited lost the field")
	}
}
