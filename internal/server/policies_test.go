// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestOpenNodes: WL-19, whoever makes a policy is told on which nodes nobody enforces it.
func TestOpenNodes(t *testing.T) {
	node := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	for want, nodes := range map[string][]*corev1.Node{
		"": {node("here")},
		"agents that have joined enforce none, so pods are open on node far, there; it is enforced on node here": {
			node("there"), node("here"), node("far")},
	} {
		if got := openNodes("here", nodes); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
