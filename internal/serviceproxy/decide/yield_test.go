// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RS-10: a service takes over no port on which a program of the machine listens, at an address of the machine or as a
// node port, nor an address in the networks of pods and services; what it had before the program came it keeps.
// ATTACK B27.
func TestYield(t *testing.T) {
	facts := node()
	facts.Reserved = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("10.244.0.0/16")}
	sshd := func(k Key) string {
		if k.Port == 80 && k.Place == External || k.Port == 30080 && k.Place == NodePort {
			return "sshd (pid 7) listens on it"
		}
		return ""
	}
	for name, c := range map[string]struct {
		spec    func(*corev1.ServiceSpec)
		busy    func(Key) string
		carried []Key
		want    string
	}{
		"its own address":   {nil, sshd, nil, ""},
		"another's address": {func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"198.51.100.7"} }, sshd, nil, ""},
		"the machine's address, where nothing listens": {
			func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"192.0.2.1"} }, free, nil, ""},
		"the machine's address, where a program listens": {
			func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"192.0.2.1", "198.51.100.7"} }, sshd, nil,
			"192.0.2.1:80/tcp ns/web: sshd (pid 7) listens on it: stop it, or choose another port"},
		"the same, and the service was there before": {
			func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"192.0.2.1"} }, sshd,
			[]Key{{Place: External, Addr: netip.MustParseAddr("192.0.2.1"), Proto: TCP, Port: 80}}, ""},
		"a node port on which a program listens": {
			func(s *corev1.ServiceSpec) { s.Ports[0].NodePort = 30080 }, sshd, nil,
			"node port 30080/tcp (IPv4) ns/web: sshd (pid 7) listens on it: stop it, or choose another port"},
		"a node port that is free": {func(s *corev1.ServiceSpec) { s.Ports[0].NodePort = 30081 }, sshd, nil, ""},
		"a pod's address": {func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"10.244.0.9"} }, free, nil,
			"10.244.0.9:80/tcp ns/web: 10.244.0.9 is an address in the networks of pods and services: choose one outside of them"},
		"another node's pod's": {func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"10.244.7.9"} }, free, nil,
			"10.244.7.9:80/tcp ns/web: 10.244.7.9 is an address in the networks of pods and services: choose one outside of them"},
		"where names are answered, also if it was carried": {
			func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"10.96.0.10"} }, free,
			[]Key{{Place: External, Addr: netip.MustParseAddr("10.96.0.10"), Proto: TCP, Port: 80}},
			"10.96.0.10:80/tcp ns/web: 10.96.0.10 is an address in the networks of pods and services: choose one outside of them"},
	} {
		t.Run(name, func(t *testing.T) {
			parts := []*Part{Of(facts, service(c.spec), []*discoveryv1.EndpointSlice{slice("http", 8080, "10.244.0.3")})}
			tables := Merge(parts)
			before := len(tables.Keys)
			carried := map[Key]string{}
			for _, k := range c.carried {
				carried[k] = "chain"
			}
			var said []string
			for _, r := range tables.Yield(facts, parts, carried, c.busy) {
				said = append(said, fmt.Sprintf("%s %s: %s", r.Key, r.Service, r.Why))
				if _, there := tables.Keys[r.Key]; there {
					t.Errorf("%s is still there", r.Key)
				}
			}
			if got := strings.Join(said, "\n"); got != c.want {
				t.Errorf("refused:\n%s\nwant:\n%s", got, c.want)
			}
			if len(tables.Keys) != before-len(said) {
				t.Errorf("%d entries of %d are left, and %d were refused", len(tables.Keys), before, len(said))
			}
		})
	}
}

func free(Key) string { return "" }

// RS-10: the service that is told is the one that would have had the entry.
func TestYieldTellsTheOwner(t *testing.T) {
	older, younger := service(nil), service(nil)
	older.Name, younger.Name = "older", "younger"
	younger.CreationTimestamp = metav1.NewTime(time.Unix(1, 0))
	older.CreationTimestamp = metav1.NewTime(time.Unix(0, 0))
	for _, s := range []*corev1.Service{older, younger} {
		s.Spec.ExternalIPs = []string{"192.0.2.1"}
	}
	facts := node()
	ends := []*discoveryv1.EndpointSlice{slice("http", 8080, "10.244.0.3")}
	parts := []*Part{Of(facts, younger, ends), Of(facts, older, ends)}
	refused := Merge(parts).Yield(facts, parts, nil, func(Key) string { return "in use" })
	if len(refused) != 1 || refused[0].Service != "ns/older" {
		t.Errorf("%+v", refused)
	}
}
