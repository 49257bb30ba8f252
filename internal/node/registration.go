// SPDX-License-Identifier: Apache-2.0

package node

import (
	"maps"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Registration is what the object of a node is made with besides what its agent knows by itself (PL-36), in the words
// of a kubelet's --node-labels and --register-with-taints.
type Registration struct {
	Labels map[string]string
	Taints []corev1.Taint // of the node when it is made: later they are others' to add and remove
}

// Object is a node's object as it is made. A label that was chosen holds against the agent's own, as with a kubelet.
func (r Registration) Object(nodeName string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: with(Labels(nodeName), r.Labels)},
		Spec: corev1.NodeSpec{Taints: r.Taints}}
}

// kept are those of an object's labels that a kubelet sets again on a node that there is, at each of its starts; the
// others somebody may have changed in between. (pkg/kubelet/kubelet_node_status.go, updateDefaultLabels)
func kept(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(name, _ string) bool {
		switch name {
		case corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
			corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion, corev1.LabelInstanceTypeStable,
			corev1.LabelInstanceType, corev1.LabelOSStable, corev1.LabelArchStable, betaOS, betaArch:
			return false
		}
		return true
	})
	return out
}

// Labels that only the kubelet's own packages have names for.
const (
	betaOS   = "beta.kubernetes.io/os"
	betaArch = "beta.kubernetes.io/arch"
)

// Labels are those that a node of this machine has by itself.
func Labels(nodeName string) map[string]string {
	return map[string]string{
		corev1.LabelHostname:   nodeName,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: runtime.GOARCH,
		betaOS:                 "linux",
		betaArch:               runtime.GOARCH,
	}
}

// with is have with what is wanted of it.
func with(have, want map[string]string) map[string]string {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, want)
	return out
}
