// SPDX-License-Identifier: Apache-2.0

package nodenetwork

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"
)

// full fills all there is of an object.
func full(obj any) {
	randfill.NewWithSeed(1).NilChance(0).NumElements(1, 2).MaxDepth(12).Funcs(
		func(t *metav1.Time, _ randfill.Continue) { *t = metav1.Unix(1, 0) },
	).Fill(obj)
}

// fields are the paths of what JSON says, those of lists and of maps with names of the user's once.
func fields(at string, v any, out map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			if at == ".metadata.labels" {
				key = "*"
			}
			fields(at+"."+key, x, out)
		}
	case []any:
		for _, x := range v {
			fields(at+"[]", x, out)
		}
	default:
		out[at] = true
	}
}

func told(t *testing.T, obj any) string {
	t.Helper()
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	fields("", v, out)
	var list []string
	for path := range out {
		list = append(list, path)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// WL-20: of a pod and of a node in which everything is set, no more is told than this.
func TestSlim(t *testing.T) {
	var p corev1.Pod
	full(&p)
	always := corev1.ContainerRestartPolicyAlways
	p.Spec.InitContainers[0].RestartPolicy = &always
	const meta = ".metadata.creationTimestamp .metadata.deletionTimestamp .metadata.labels.* .metadata.name"
	want := ".apiVersion .kind " + meta + " .metadata.namespace .metadata.resourceVersion .metadata.uid " +
		".spec.containers[].name .spec.containers[].ports[].containerPort .spec.containers[].ports[].name .spec.containers[].ports[].protocol " +
		".spec.containers[].restartPolicy .spec.hostNetwork " +
		".spec.initContainers[].name .spec.initContainers[].ports[].containerPort .spec.initContainers[].ports[].name .spec.initContainers[].ports[].protocol " +
		".spec.initContainers[].restartPolicy .spec.nodeName .status.phase .status.podIP .status.podIPs[].ip"
	if got := strings.ReplaceAll(told(t, SlimPod(&p)), ".spec.containers[].resources ", ""); got != want {
		t.Errorf("of a pod is told\n %s\nwant\n %s", got, want)
	}
	var n corev1.Node
	full(&n)
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "secret"}, {Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
	want = ".apiVersion .kind " + strings.ReplaceAll(meta, ".metadata.labels.* ", "") + " .metadata.namespace .metadata.resourceVersion .metadata.uid " +
		".spec.podCIDR .spec.podCIDRs[] .status.addresses[].address .status.addresses[].type"
	if got := told(t, SlimNode(&n)); !strings.HasPrefix(got, want) || strings.Contains(fmt.Sprint(SlimNode(&n)), "secret") {
		t.Errorf("of a node is told\n %s\nwant\n %s", got, want)
	}
}

// WL-20: containers without named ports, and those that end, are of no interest to policies.
func TestSlimContainers(t *testing.T) {
	ports := []corev1.ContainerPort{{Name: "web", ContainerPort: 80}, {ContainerPort: 81}}
	p := SlimPod(&corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init", Ports: ports}, {Name: "side", Ports: ports, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}},
		Containers:     []corev1.Container{{Name: "quiet", Ports: ports[1:]}, {Name: "main", Ports: ports}},
	}})
	var got []string
	for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
		got = append(got, fmt.Sprint(c.Name, len(c.Ports)))
	}
	if fmt.Sprint(got) != "[side1 main1]" {
		t.Errorf("told of are %v", got)
	}
}
