// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestOpenNodes: WL-19, whoever makes a policy is told on which nodes nobody enforces it.
func TestOpenNodes(t *testing.T) {
	node := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	for want, nodes := range map[string][]*corev1.Node{
		"": {node("here")},
		"agents without a pod network of their own enforce none, so pods are open on node far, there; it is enforced on node here": {
			node("there"), node("here"), node("far")},
	} {
		if got := openNodes("here", nodes); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestUnenforced: WL-19, whoever makes a policy is told why nobody enforces it, and while the server starts that it may
// be enforced yet.
func TestUnenforced(t *testing.T) {
	s := &Server{ready: make(chan struct{})}
	says := func(want string) {
		t.Helper()
		if got := s.unenforced(); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	says("still starting")
	close(s.ready)
	says("no pod network")
	s.opts.RuntimeEndpoint = "unix:///run/other.sock"
	says("CNI plug-in")
}
