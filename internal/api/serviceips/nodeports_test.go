// SPDX-License-Identifier: Apache-2.0

package serviceips

import (
	"maps"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func nodePortService(name string, ports ...int32) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}}
	for i, p := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: int32(80 + i), Protocol: corev1.ProtocolTCP, NodePort: p})
	}
	return s
}

// TestNodePorts: WL-24: each port is given out once; what is refused says what to do; what is not used is given back.
func TestNodePorts(t *testing.T) {
	n, err := NewNodePorts("30000-30002")
	if err != nil {
		t.Fatal(err)
	}
	made := func(s, old *corev1.Service) {
		t.Helper()
		finish, err := n.assign(s, old, false)
		if err != nil {
			t.Fatal(err)
		}
		finish(true)
	}
	refused := func(s, old *corev1.Service, says string) {
		t.Helper()
		before := maps.Clone(n.used)
		if _, err := n.assign(s, old, false); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
		if !maps.Equal(before, n.used) {
			t.Errorf("a refusal leaves %v, before %v", n.used, before)
		}
	}
	a := nodePortService("a", 30001, 0)
	made(a, nil)
	if got := a.Spec.Ports[1].NodePort; got != 30000 && got != 30002 {
		t.Errorf("port %d was given", got)
	}
	refused(nodePortService("b", 0, 30001), nil, "already allocated, to service ns/a; choose another")
	refused(nodePortService("b", 29999), nil, "The range of valid ports is 30000-30002; choose")
	refused(nodePortService("b", 0, 0), nil, "all of range 30000-30002 are taken")
	if finish, err := n.assign(nodePortService("b", 0), nil, true); err != nil {
		t.Error(err)
	} else {
		finish(true) // a dry run
	}

	again := nodePortService("a", 0, 0)
	made(again, a)
	if again.Spec.Ports[0].NodePort != 30001 || again.Spec.Ports[1].NodePort != a.Spec.Ports[1].NodePort {
		t.Errorf("after an update without them the ports are %+v", again.Spec.Ports)
	}
	less := nodePortService("a", 30001)
	made(less, again)
	if len(n.used) != 1 {
		t.Errorf("taken: %v", n.used)
	}
	inside := nodePortService("a", 0)
	inside.Spec.Type = corev1.ServiceTypeClusterIP
	made(inside, less)
	if len(n.used) != 0 || inside.Spec.Ports[0].NodePort != 0 {
		t.Errorf("a cluster IP service has %v, %v", inside.Spec.Ports, n.used)
	}

	both := nodePortService("both", 30000, 30000)
	both.Spec.Ports[1].Protocol = corev1.ProtocolUDP
	made(both, nil)
	pair := nodePortService("both", 0, 30000)
	pair.Spec.Ports[1].Protocol, pair.Spec.Ports[1].Port = corev1.ProtocolUDP, pair.Spec.Ports[0].Port
	made(pair, both)
	if pair.Spec.Ports[0].NodePort != 30000 {
		t.Errorf("the same port of two protocols is at %d and %d", pair.Spec.Ports[0].NodePort, pair.Spec.Ports[1].NodePort)
	}
	pair = nodePortService("both", 0, 0)
	pair.Spec.Ports[1].Protocol, pair.Spec.Ports[1].Port = corev1.ProtocolUDP, pair.Spec.Ports[0].Port
	if finish, err := n.assign(pair, nil, true); err != nil || pair.Spec.Ports[0].NodePort == 0 || pair.Spec.Ports[0].NodePort != pair.Spec.Ports[1].NodePort {
		t.Errorf("the same port of two protocols is at %d and %d: %v", pair.Spec.Ports[0].NodePort, pair.Spec.Ports[1].NodePort, err)
	} else {
		finish(false)
	}
	checked := nodePortService("checked", 0)
	checked.Spec.Type, checked.Spec.ExternalTrafficPolicy = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicyLocal
	made(checked, nil)
	if checked.Spec.HealthCheckNodePort == 0 || len(n.used) != 3 {
		t.Errorf("health check at %d, taken: %v", checked.Spec.HealthCheckNodePort, n.used)
	}
	none := nodePortService("none", 0)
	none.Spec.Type, none.Spec.AllocateLoadBalancerNodePorts = corev1.ServiceTypeLoadBalancer, ptr.To(false)
	made(none, nil)

	restarted, err := NewNodePorts("30000-30002")
	if err != nil {
		t.Fatal(err)
	}
	restarted.Load([]corev1.Service{*both, *checked, *none})
	if !maps.Equal(restarted.used, n.used) {
		t.Errorf("after a start %v, before %v", restarted.used, n.used)
	}
	for _, bad := range []string{"", "x", "0-10", "65000-70000", "5-1"} {
		if _, err := NewNodePorts(bad); err == nil || !strings.Contains(err.Error(), "30000-32767") {
			t.Errorf("range %q: %v", bad, err)
		}
	}
}

// TestNodePortsRacing: WL-24: of many who want the same port at the same time one has it.
func TestNodePortsRacing(t *testing.T) {
	n, err := NewNodePorts("30000-30100")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	given := map[int32]int{}
	for i := range 20 {
		wg.Go(func() {
			s := nodePortService("s", 30050*int32(i%2), 0)
			finish, err := n.assign(s, nil, false)
			if err != nil {
				return
			}
			finish(true)
			mu.Lock()
			defer mu.Unlock()
			for p := range portsOf(s) {
				given[p]++
			}
		})
	}
	wg.Wait()
	for p, times := range given {
		if times != 1 {
			t.Errorf("port %d was given %d times", p, times)
		}
	}
}
