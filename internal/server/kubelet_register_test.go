// SPDX-License-Identifier: Apache-2.0

package server

import (
	"maps"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/node"
)

// TestRegistrationOptions proves PL-36: labels and taints are read in a kubelet's words and reach the agent, and what it
// refuses is refused with the flag's name before anything begins.
func TestRegistrationOptions(t *testing.T) {
	o := Defaults()
	o.Kubelet.NodeLabels = []string{"team=a", "empty", "topology.kubernetes.io/zone=z", "node.kubernetes.io/x=",
		"my.kubelet.kubernetes.io/y=1", "example.com/kubernetes.io=1"}
	o.Kubelet.RegisterWithTaints = []string{"dedicated=gpu:NoSchedule", "dedicated:NoExecute"}
	var c node.Config
	if err := o.kubelet(&c); err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"team": "a", "empty": "", "topology.kubernetes.io/zone": "z", "node.kubernetes.io/x": "",
		"my.kubelet.kubernetes.io/y": "1", "example.com/kubernetes.io": "1"}; !maps.Equal(c.Registration.Labels, want) {
		t.Errorf("labels %v, want %v", c.Registration.Labels, want)
	}
	if got := c.Registration.Taints; len(got) != 2 || got[0].ToString() != "dedicated=gpu:NoSchedule" ||
		got[1].ToString() != "dedicated:NoExecute" {
		t.Errorf("taints %v", got)
	}
	for label, say := range map[string]string{
		"kubernetes.io/x=1": "kubernetes.io/x is not a label that a node may give itself", "a.k8s.io/x=1": "may give itself",
		"node-role.kubernetes.io/worker=":    "kubectl label node",
		"node-restriction.kubernetes.io/x=1": "node-restriction.kubernetes.io/x is not a label",
		"a b=1":                              "is not a label's name",
		"=1":                                 "is not a label's name",
		"a=b c":                              `"b c" is not a label's value`,
		"a=" + strings.Repeat("x", 64):       "is not a label's value",
		"a//b=":                              "is not a label's name",
	} {
		o := Defaults()
		o.Kubelet.NodeLabels = []string{label}
		if _, err := o.complete(); err == nil || !strings.Contains(err.Error(), "--node-labels: ") ||
			!strings.Contains(err.Error(), say) {
			t.Errorf("label %q: %v\nlacks %s", label, err, say)
		}
	}
	for taint, say := range map[string]string{
		"a": `the effect is "" and must be one of`, "a=b:Never": `the effect is "Never"`, "a=b:NoSchedule:x": "the effect is",
		"a=b=c:NoSchedule": `"b=c" is not a taint's value`, ":NoSchedule": "is not a taint's key",
		"a:NoSchedule-": `the effect is "NoSchedule-"`,
	} {
		o := Defaults()
		o.Kubelet.RegisterWithTaints = []string{taint}
		if _, err := o.complete(); err == nil || !strings.Contains(err.Error(), "--register-with-taints: ") ||
			!strings.Contains(err.Error(), say) {
			t.Errorf("taint %q: %v\nlacks %s", taint, err, say)
		}
	}
	o.Kubelet.RegisterWithTaints = []string{"a=1:NoSchedule", "a=2:NoSchedule"}
	if _, err := o.complete(); err == nil || !strings.Contains(err.Error(), "there is a taint a with the effect") {
		t.Error(err)
	}
}
