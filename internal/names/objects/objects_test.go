// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"net/netip"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/names"
)

func ips(texts ...string) (out []netip.Addr) {
	for _, t := range texts {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

// WL-13 (P): what names need of services, of each kind.
func TestService(t *testing.T) {
	for name, c := range map[string]struct {
		spec corev1.ServiceSpec
		want names.Service
	}{
		"with addresses": {corev1.ServiceSpec{ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1", "fd00::1"},
			Ports: []corev1.ServicePort{{Name: "a", Port: 80}, {Port: 53, Protocol: corev1.ProtocolUDP}}},
			names.Service{IPs: ips("10.96.0.1", "fd00::1"), Ports: []names.Port{{Name: "a", Protocol: "tcp", Number: 80}, {Protocol: "udp", Number: 53}}}},
		"with the old field alone": {corev1.ServiceSpec{ClusterIP: "10.96.0.1"}, names.Service{IPs: ips("10.96.0.1")}},
		"headless":                 {corev1.ServiceSpec{ClusterIP: "None", ClusterIPs: []string{"None"}}, names.Service{}},
		"another name":             {corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "x.example"}, names.Service{ExternalName: "x.example"}},
	} {
		if got := Service(&corev1.Service{Spec: c.spec}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// WL-13 (P): endpoints that are not ready have no names; those that do not say are ready.
func TestSlice(t *testing.T) {
	ready := func(r *bool) discoveryv1.EndpointConditions { return discoveryv1.EndpointConditions{Ready: r} }
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", Labels: map[string]string{discoveryv1.LabelServiceName: "svc"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("a"), Port: ptr.To(int32(1)), Protocol: ptr.To(corev1.ProtocolUDP)}, {Port: ptr.To(int32(2))}, {Name: ptr.To("any")}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Hostname: ptr.To("h")}, {Addresses: []string{"10.0.0.2"}, Conditions: ready(ptr.To(true))},
			{Addresses: []string{"10.0.0.3"}, Conditions: ready(ptr.To(false))}}}
	want := names.Slice{Namespace: "n", Name: "s", Service: "svc", Ports: []names.Port{{Name: "a", Protocol: "udp", Number: 1}, {Protocol: "tcp", Number: 2}},
		Endpoints: []names.Endpoint{{Hostname: "h", Addresses: ips("10.0.0.1")}, {Addresses: ips("10.0.0.2")}}}
	if got := Slice(s); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	s.AddressType = discoveryv1.AddressTypeFQDN
	if got := Slice(s); got.Endpoints != nil {
		t.Errorf("%+v", got)
	}
}

// WL-14 (P): a pod is known by the addresses that are its own as long as it runs.
func TestPod(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "u"}, Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}}}}
	if got, want := Pod(p), (names.Pod{Namespace: "n", Name: "p", UID: "u", IPs: ips("10.0.0.1", "fd00::1")}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for name, change := range map[string]func(*corev1.Pod){
		"on the host's network": func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"ended":                 func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		"failed":                func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
	} {
		other := p.DeepCopy()
		change(other)
		if got := Pod(other); got.IPs != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
