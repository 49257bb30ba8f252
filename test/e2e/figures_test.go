// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// PL-36: /stats/summary has all that the kubelet's has, and dashboards find the names of cAdvisor. A checkpoint is refused
// with a reason where the runtime has no CRIU (PL-35).
func TestKubeletFigures(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	pod := k.up(`
metadata: {name: p}
spec:
  volumes: [{name: disk, emptyDir: {}}, {name: memory, emptyDir: {medium: Memory}}]
  containers:
  - name: c
    command: [sh, -c, 'dd if=/dev/zero of=/disk/x bs=1k count=512; dd if=/dev/zero of=/memory/x bs=1k count=256; echo hello; IDLE']
    volumeMounts: [{name: disk, mountPath: /disk}, {name: memory, mountPath: /memory}]
`)
	k.awaitLog("p", "c", "hello")
	get := func(path string) string {
		return k.Kubectl("get", "--raw", "/api/v1/nodes/"+pod.Spec.NodeName+"/proxy/"+path).Out
	}
	var s statsapi.Summary
	k.must(json.Unmarshal([]byte(get("stats/summary")), &s))
	n := s.Node
	if n.Fs == nil || *n.Fs.CapacityBytes == 0 || n.Runtime == nil || n.Runtime.ImageFs == nil ||
		n.Network == nil || n.Rlimit == nil || n.Swap == nil || n.Memory.RSSBytes == nil || n.Memory.PageFaults == nil {
		t.Errorf("PL-36: the node lacks figures: %+v", n)
	}
	found := false
	for _, p := range s.Pods {
		if p.PodRef.UID != string(pod.UID) {
			continue
		}
		found = true
		full := map[string]uint64{}
		for _, v := range p.VolumeStats {
			full[v.Name] = *v.UsedBytes
		}
		if full["disk"] < 512<<10 || full["memory"] < 256<<10 {
			t.Errorf("PL-36: its volumes hold %v", full)
		}
		c := p.Containers[0]
		if c.Logs == nil || *c.Logs.UsedBytes == 0 || c.Rootfs == nil || c.Rootfs.CapacityBytes == nil || *p.EphemeralStorage.UsedBytes < 512<<10 {
			t.Errorf("PL-36: the container lacks figures: %+v", c)
		}
	}
	if !found {
		t.Error("PL-36: the pod is not in the summary")
	}
	text := get("metrics/cadvisor")
	of := `namespace="` + pod.Namespace + `",pod="p"} `
	for _, want := range []string{`container_memory_working_set_bytes{container="c",id="/[^"]*pod[^"]*",image="[^"]+",name="[0-9a-f]{64}",` + of,
		`container_cpu_usage_seconds_total{container="",cpu="total",id="/[^"]*pod[^"]*",image="",name="",` + of,
		`container_network_receive_bytes_total{container="",id="/[^"]*",image="",interface="eth0",name="",` + of,
		`container_spec_memory_limit_bytes{container="c",id="[^"]*",image="[^"]+",name="[^"]+",` + of + "0\n",
		`container_memory_cache{container="",id="[^"]*",image="",name="",` + of, "machine_cpu_cores"} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("PL-36: /metrics/cadvisor lacks %s", want)
		}
	}
	if text := get("metrics"); !strings.Contains(text, `kubelet_node_name{node="`+pod.Spec.NodeName+`"} 1`) {
		t.Error("PL-36: /metrics does not name the node")
	}
	get("metrics/probes")
	r := k.KubectlFails("create", "--raw", "/api/v1/nodes/"+pod.Spec.NodeName+"/proxy/checkpoint/"+pod.Namespace+"/p/c", "-f", "/dev/null")
	r.Says("checkpointing of", "CRIU")
}
