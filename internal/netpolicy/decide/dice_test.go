// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

type dice struct{ *rand.Rand }

func (d dice) one(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }

func (d dice) labels() map[string]string {
	out := map[string]string{}
	for _, k := range []string{"a", "b"} {
		if d.one(2) {
			out[k] = pick(d, "1", "2")
		}
	}
	return out
}

func (d dice) selector() metav1.LabelSelector {
	switch d.IntN(5) {
	case 0:
		return metav1.LabelSelector{}
	case 1:
		return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: pick(d, "a", "b"),
			Operator: pick(d, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}}}
	case 2:
		return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: pick(d, "a", "b"),
			Operator: pick(d, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn), Values: []string{"1", "3"}}}}
	}
	return metav1.LabelSelector{MatchLabels: map[string]string{pick(d, "a", "b"): pick(d, "1", "2")}}
}

func (d dice) peers() (out []networkingv1.NetworkPolicyPeer) {
	for range d.IntN(4) {
		p := networkingv1.NetworkPolicyPeer{}
		switch d.IntN(4) {
		case 0:
			p.IPBlock = &networkingv1.IPBlock{CIDR: pick(d, "10.0.0.0/24", "10.0.0.0/29", "0.0.0.0/0", "fd00::/120", "192.0.2.0/24")}
			if strings.HasPrefix(p.IPBlock.CIDR, "10.") && d.one(2) {
				p.IPBlock.Except = []string{"10.0.0.2/32", "10.0.0.4/31"}
			}
		case 1:
			p.PodSelector = ptr.To(d.selector())
		case 2:
			p.NamespaceSelector = ptr.To(d.selector())
		case 3:
			p.PodSelector, p.NamespaceSelector = ptr.To(d.selector()), ptr.To(d.selector())
		}
		out = append(out, p)
	}
	return out
}

func (d dice) ports() (out []networkingv1.NetworkPolicyPort) {
	for range d.IntN(3) {
		p := networkingv1.NetworkPolicyPort{}
		if d.one(2) {
			p.Protocol = ptr.To(pick(d, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP))
		}
		switch d.IntN(4) {
		case 0:
			p.Port = ptr.To(intstr.FromString(pick(d, "web", "dns")))
		case 1:
			p.Port = ptr.To(intstr.FromInt32(int32(80 + d.IntN(3))))
		case 2:
			p.Port, p.EndPort = ptr.To(intstr.FromInt32(80)), ptr.To(int32(81+d.IntN(2)))
		}
		out = append(out, p)
	}
	return out
}

func (d dice) policy(namespace, name string) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.PodSelector = d.selector()
	for range d.IntN(3) {
		p.Spec.Ingress = append(p.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{From: d.peers(), Ports: d.ports()})
	}
	for range d.IntN(3) {
		p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{To: d.peers(), Ports: d.ports()})
	}
	p.Spec.PolicyTypes = pick(d, nil, nil, []networkingv1.PolicyType{"Ingress"}, []networkingv1.PolicyType{"Egress"},
		[]networkingv1.PolicyType{"Ingress", "Egress"})
	return p
}

var born = time.Unix(1_700_000_000, 0)

func (d dice) pod(namespace, name string, n int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name), Labels: d.labels(),
		CreationTimestamp: metav1.NewTime(born)}}
	p.Spec.HostNetwork = d.one(12)
	p.Status.Phase = pick(d, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded)
	p.Status.PodIPs = []corev1.PodIP{{IP: fmt.Sprintf("10.0.0.%d", n)}, {IP: fmt.Sprintf("fd00::%x", n)}}
	if d.one(10) {
		p.Status.PodIPs = nil
	}
	var ports []corev1.ContainerPort
	for _, name := range []string{"web", "dns"} {
		if d.one(2) {
			ports = append(ports, corev1.ContainerPort{Name: name, ContainerPort: int32(80 + d.IntN(3)),
				Protocol: pick(d, "", corev1.ProtocolTCP, corev1.ProtocolUDP)})
		}
	}
	p.Spec.Containers = []corev1.Container{{Ports: ports}}
	return p
}

// town has pods of any kind in two namespaces, and no policies.
func (d dice) town() objects {
	o := objects{map[string]*networkingv1.NetworkPolicy{}, map[string]*corev1.Pod{}, map[string]map[string]string{}}
	for i, ns := range []string{"n1", "n2"} {
		o.namespaces[ns] = d.labels()
		for n := range 3 {
			name := fmt.Sprint("pod", n)
			o.pods[ns+"/"+name] = d.pod(ns, name, 3*i+n+1)
		}
	}
	return o
}
