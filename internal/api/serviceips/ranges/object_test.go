// SPDX-License-Identifier: Apache-2.0

package ranges

import (
	"net/netip"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/apis/networking"
)

// TestNext: WL-25: what is done about the IPAddress of an address.
func TestNext(t *testing.T) {
	web, nobody := types.NamespacedName{Namespace: "ns", Name: "web"}, types.NamespacedName{}
	ip := netip.MustParseAddr("10.96.0.7")
	but := func(change func(*networking.IPAddress)) *networking.IPAddress {
		o := Object(ip, web)
		change(o)
		return o
	}
	foreign := but(func(o *networking.IPAddress) {
		o.Labels = map[string]string{networkingv1.LabelManagedBy: "example.com"}
		o.Spec.ParentRef = &networking.ParentReference{Group: "gateway.networking.k8s.io", Resource: "gateways",
			Name: "web", Namespace: "ns"}
	})
	for _, tt := range []struct {
		name  string
		owner types.NamespacedName
		have  *networking.IPAddress
		want  Step
	}{
		{"a new service", web, nil, Make},
		{"nobody's", nobody, nil, Nothing},
		{"as it should be", web, Object(ip, web), Nothing},
		{"with labels and annotations besides", web,
			but(func(o *networking.IPAddress) { o.Labels["a"], o.Annotations = "b", map[string]string{"c": "d"} }),
			Nothing},
		{"of a service that was here before", web, Object(ip, types.NamespacedName{Namespace: "ns", Name: "other"}),
			Remake},
		{"of another namespace's", web, Object(ip, types.NamespacedName{Namespace: "other", Name: "web"}), Remake},
		{"without labels", web, but(func(o *networking.IPAddress) { o.Labels = nil }), Remake},
		{"of the wrong family", web,
			but(func(o *networking.IPAddress) { o.Labels[networkingv1.LabelIPAddressFamily] = "IPv6" }), Remake},
		{"without a parent", web, but(func(o *networking.IPAddress) { o.Spec.ParentRef = nil }), Remake},
		{"somebody else's, of a service's address", web, foreign, Remake},
		{"somebody else's", nobody, foreign, Nothing},
		{"of a service that is gone", nobody, Object(ip, web), Remove},
		{"going", nobody, but(func(o *networking.IPAddress) { o.DeletionTimestamp = &metav1.Time{} }), Nothing},
		{"going, and wanted", web, but(func(o *networking.IPAddress) { o.DeletionTimestamp = &metav1.Time{} }),
			Nothing},
	} {
		if got := Next(tt.owner, tt.have); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
	six := Object(netip.MustParseAddr("fd00::7"), web)
	if six.Name != "fd00::7" || six.Labels[networkingv1.LabelIPAddressFamily] != "IPv6" || !IsOf(six, web) {
		t.Errorf("%+v", six)
	}
	if six.Name = "x"; IsOf(six, web) {
		t.Error("an object whose name is no address")
	}
}

// TestCondition: WL-25: a ServiceCIDR says that it is ready, or why it stays, as Kubernetes' has it.
func TestCondition(t *testing.T) {
	o := &networking.ServiceCIDR{}
	for _, goes := range []bool{false, true} {
		c := Condition(goes)
		if Says(o, c) {
			t.Errorf("it says %+v already", c)
		}
		meta.SetStatusCondition(&o.Status.Conditions, c)
		if !Says(o, c) || len(o.Status.Conditions) != 1 || c.Type != "Ready" ||
			(c.Status == metav1.ConditionTrue) == goes ||
			(c.Reason == "Terminating") != goes {
			t.Errorf("%+v", o.Status.Conditions)
		}
	}
}
