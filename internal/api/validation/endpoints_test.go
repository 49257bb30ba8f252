// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

// TestValidateEndpoints: what is wrong is named by its field; what was stored so is left alone while it does not change.
func TestValidateEndpoints(t *testing.T) {
	good := func() *corev1.Endpoints {
		return &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", ResourceVersion: "1"}, Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: "10.1.2.3", Hostname: "a", NodeName: new("n")}},
			Ports:     []corev1.EndpointPort{{Port: 80, Protocol: "TCP", AppProtocol: new("http")}},
		}}}
	}
	if all := ValidateEndpoints(good()); len(all) > 0 {
		t.Fatalf("good ones: %v", all)
	}
	for field, spoil := range map[string]func(s *corev1.EndpointSubset){
		"subsets[0]":                         func(s *corev1.EndpointSubset) { s.Addresses = nil },
		"subsets[0].addresses[0].ip":         func(s *corev1.EndpointSubset) { s.Addresses[0].IP = "127.0.0.1" },
		"subsets[0].addresses[0].hostname":   func(s *corev1.EndpointSubset) { s.Addresses[0].Hostname = "A" },
		"subsets[0].addresses[0].nodeName":   func(s *corev1.EndpointSubset) { s.Addresses[0].NodeName = new("A") },
		"subsets[0].notReadyAddresses[0].ip": func(s *corev1.EndpointSubset) { s.NotReadyAddresses = []corev1.EndpointAddress{{IP: "x"}} },
		"subsets[0].ports[0].port":           func(s *corev1.EndpointSubset) { s.Ports[0].Port = 0 },
		"subsets[0].ports[0].protocol":       func(s *corev1.EndpointSubset) { s.Ports[0].Protocol = "tcp" },
		"subsets[0].ports[0].appProtocol":    func(s *corev1.EndpointSubset) { s.Ports[0].AppProtocol = new("a b") },
		"subsets[0].ports[1].name": func(s *corev1.EndpointSubset) {
			s.Ports[0].Name = "a"
			s.Ports = append(s.Ports, s.Ports[0])
			s.Ports[1].Name = ""
		},
	} {
		bad := good()
		spoil(&bad.Subsets[0])
		for name, all := range map[string]rules.Errs{"create": ValidateEndpoints(bad), "update": ValidateEndpointsUpdate(bad, good())} {
			if len(all) != 1 || all[0].Field != field {
				t.Errorf("%s: want one error at %s, got %v", name, field, all)
			}
		}
		if all := ValidateEndpointsUpdate(bad, bad); len(all) > 0 {
			t.Errorf("unchanged subsets are held against an update: %v", all)
		}
	}
}
