// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/component-helpers/nodedeclaredfeatures/features"
)

// notDeclared says why a feature is not. All of them are alpha in Kubernetes 1.37, and off by default in a kubelet.
func notDeclared() map[string]string {
	return map[string]string{
		"DRANodeAllocatableResources":                  "resource claims are acted on by nobody (SCOPE.md): devices are given out by device plug-ins alone",
		"DRAOptionalNodeOperations":                    "resource claims are acted on by nobody",
		"InPlacePodVerticalScalingMemoryBackedVolumes": "a mounted volume keeps its size",
		"UserNamespacesHostNetworkSupport":             "package podspec refuses hostUsers: false beside hostNetwork",
		"VolumeBindMountOptions":                       "bindMountOptions are not handed to the runtime",
	}
}

// TestDeclaredFeatures proves PL-13: each feature that schedulers and API servers ask nodes for is declared, or there is
// a reason why not, and there are no others.
func TestDeclaredFeatures(t *testing.T) {
	declared, lacks := declaredFeatures(), notDeclared()
	if !slices.IsSorted(declared) {
		t.Errorf("an API server takes them in order only: %q", declared)
	}
	known := map[string]bool{}
	for _, f := range features.AllFeatures {
		name := f.Name()
		known[name] = true
		if has := slices.Contains(declared, name); has == (lacks[name] != "") {
			t.Errorf("%s: declared %t, and the reason why not is %q", name, has, lacks[name])
		}
	}
	for _, name := range declared {
		if !known[name] {
			t.Errorf("nobody asks for %s", name)
		}
	}
	for name := range lacks {
		if !known[name] {
			t.Errorf("nobody asks for %s, which is not declared", name)
		}
	}
}

// TestSchedulerTakesRestartRules proves PL-28 as an ordinary cluster's scheduler sees it: a pod whose rules restart all
// of its containers fits a node with what this agent declares, as the scheduler's plug-in NodeDeclaredFeatures judges.
func TestSchedulerTakesRestartRules(t *testing.T) {
	judge := nodedeclaredfeatures.New(slices.Clone(features.AllFeatures))
	needs, err := judge.InferForPodScheduling(&nodedeclaredfeatures.PodInfo{Spec: &corev1.PodSpec{
		Containers: []corev1.Container{{RestartPolicyRules: []corev1.ContainerRestartRule{
			{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}}}}}, version.MustParseSemantic("1.37.0"))
	if err != nil || needs.IsEmpty() {
		t.Fatalf("it needs nothing of a node, and so proves nothing: %v", err)
	}
	node := &corev1.Node{Status: corev1.NodeStatus{DeclaredFeatures: declaredFeatures()}}
	if got, err := judge.MatchNode(needs, node); err != nil || !got.IsMatch {
		t.Errorf("%+v, %v", got, err)
	}
}
