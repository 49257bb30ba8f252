// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// TestNodePatch proves PL-13 beside others who write to the node: the agent read the node, then a controller gave it a
// taint, a condition and an annotation; what the agent stores after that has its own labels and status, and theirs.
func TestNodePatch(t *testing.T) {
	address := func(kind corev1.NodeAddressType, text string) corev1.NodeAddress {
		return corev1.NodeAddress{Type: kind, Address: text}
	}
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status}
	}
	read := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "here", Labels: map[string]string{"a": "1"}, ResourceVersion: "5"},
		Status: corev1.NodeStatus{
			Capacity:   corev1.ResourceList{"cpu": resource.MustParse("2"), "hugepages-2Mi": resource.MustParse("4Mi")},
			Addresses:  []corev1.NodeAddress{address(corev1.NodeInternalIP, "10.0.0.1")},
			Conditions: []corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionFalse)},
		},
	}
	meanwhile := read.DeepCopy()
	meanwhile.ResourceVersion = "6"
	meanwhile.Annotations = map[string]string{"of": "others"}
	meanwhile.Labels["b"] = "2"
	meanwhile.Spec.PodCIDR = "10.1.0.0/24"
	meanwhile.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule}}
	meanwhile.Status.Conditions = append(meanwhile.Status.Conditions,
		condition(corev1.NodeNetworkUnavailable, corev1.ConditionTrue))

	want := read.DeepCopy()
	want.Labels["a"] = "3"
	want.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4")}
	want.Status.Conditions[0].Status = corev1.ConditionTrue
	want.Status.Addresses = []corev1.NodeAddress{address(corev1.NodeInternalIP, "10.0.0.2"),
		address(corev1.NodeInternalIP, "fd00::2"), address(corev1.NodeHostName, "here")}

	patch, err := nodePatch(read, want)
	if err != nil {
		t.Fatal(err)
	}
	original, err := json.Marshal(meanwhile)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := strategicpatch.StrategicMergePatch(original, patch, corev1.Node{})
	if err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	var got corev1.Node
	if err := json.Unmarshal(patched, &got); err != nil {
		t.Fatal(err)
	}
	expect := meanwhile.DeepCopy()
	expect.Labels["a"] = "3"
	expect.Status.Capacity, expect.Status.Addresses = want.Status.Capacity, want.Status.Addresses
	expect.Status.Conditions[0].Status = corev1.ConditionTrue
	if !equality.Semantic.DeepEqual(&got, expect) {
		t.Errorf("patch %s\nmakes   %+v\nwanted %+v", patch, got, *expect)
	}
	if same, err := nodePatch(read, read.DeepCopy()); err != nil || string(same) != "{}" {
		t.Errorf("nothing differs: %s, %v", same, err)
	}
}
