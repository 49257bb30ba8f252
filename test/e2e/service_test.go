// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// service makes a Service from YAML; its slices are made by the test.
func (k *kit) service(text string) *corev1.Service {
	k.t.Helper()
	s := &corev1.Service{}
	k.must(yaml.UnmarshalStrict([]byte(text), s))
	made, err := k.Client.CoreV1().Services(k.Namespace).Create(k.ctx(), s, metav1.CreateOptions{})
	k.must(err)
	return made
}

// leads makes a service lead to pods; their ports are those of the service by name.
func (k *kit) leads(s *corev1.Service, ports map[string]int32, pods ...*corev1.Pod) {
	k.t.Helper()
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, ObjectMeta: metav1.ObjectMeta{Name: s.Name,
		Labels: map[string]string{discoveryv1.LabelServiceName: s.Name}}}
	for _, p := range s.Spec.Ports {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: ptr.To(p.Name), Protocol: ptr.To(p.Protocol), Port: ptr.To(ports[p.Name])})
	}
	for _, pod := range pods {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{pod.Status.PodIP}, NodeName: ptr.To(k.NodeName),
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}})
	}
	slices := k.Client.DiscoveryV1().EndpointSlices(k.Namespace)
	if _, err := slices.Get(k.ctx(), s.Name, metav1.GetOptions{}); err == nil {
		_, err := slices.Update(k.ctx(), slice, metav1.UpdateOptions{})
		k.must(err)
		return
	}
	_, err := slices.Create(k.ctx(), slice, metav1.CreateOptions{})
	k.must(err)
}

// web is a pod that answers with its name at /hostname.
func (k *kit) web(name string) *corev1.Pod {
	return k.up("metadata: {name: " + name + `}
spec:
  containers:
  - {name: web, image: tool, args: [http, ":8080"], readinessProbe: {tcpSocket: {port: 8080}}}
  - {name: c, command: [sh, -c, IDLE]}
`)
}

// asks fetches from the machine until the answer is as wanted: a rule comes a moment after its object.
func (k *kit) asks(url string, until func(answer string, err error) bool) {
	k.t.Helper()
	var answer string
	var err error
	for end := time.Now().Add(Timeout); time.Now().Before(end); {
		if answer, err = fetch(k.ctx(), url); until(answer, err) {
			return
		}
		time.Sleep(10 * time.Millisecond) // the kernel tells nobody when a rule has its effect
	}
	k.t.Errorf("the machine gets %q from %s (%v)", answer, url, err)
}

func says(want string) func(string, error) bool {
	return func(answer string, err error) bool { return err == nil && answer == want }
}

func refused(_ string, err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// WL-09, WL-10, WL-11: a Service is reached by its address from pods, from the machine and from pods on the machine's network, by its node
// port also on localhost, and by a pod that it leads to itself; without endpoints it refuses at once, one port for itself.
func TestServiceReach(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	a, b := k.web("a"), k.web("b")
	k.up(`
metadata: {name: host}
spec: {hostNetwork: true, containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	node := 30000 + FreePort(t)%2768
	s := k.service(fmt.Sprintf(`
metadata: {name: web}
spec: {type: NodePort, ports: [{name: http, port: 80, targetPort: web, nodePort: %d}, {name: dead, port: 81}]}
`, node))
	url := "http://" + s.Spec.ClusterIP + "/hostname"
	byNode := []string{fmt.Sprintf("http://127.0.0.1:%d/hostname", node), fmt.Sprintf("http://%s:%d/hostname", k.NodeIP, node)}
	refusedInPod := "wget -qO- " + url + " 2>&1 | grep -o refused"
	k.asks(url, refused)
	k.asks(byNode[0], refused)
	k.says("a", "c", refusedInPod, "refused")

	k.leads(s, map[string]int32{"http": 8080}, a)
	k.asks(url, says("a"))
	for _, u := range byNode {
		k.asks(u, says("a"))
		k.says("host", "c", "wget -qO- "+u, "a")
	}
	k.says("b", "c", "wget -qO- "+url, "a")
	k.says("b", "c", "wget -qO- "+byNode[1], "a")
	k.says("host", "c", "wget -qO- "+url, "a")
	k.says("a", "c", "wget -qO- "+url, "a") // itself
	k.asks("http://"+s.Spec.ClusterIP+":81/", refused)
	k.says("b", "c", "wget -qO- http://"+s.Spec.ClusterIP+":81/ 2>&1 | grep -o refused", "refused")

	k.leads(s, map[string]int32{"http": 8080}, a, b)
	k.asks(url, says("b"))
	k.asks(url, says("a"))
	k.leads(s, map[string]int32{"http": 8080}, b)
	k.asks(url, says("b"))
	for range 20 {
		if got, err := fetch(k.ctx(), url); err == nil && got == "a" {
			time.Sleep(10 * time.Millisecond) // the change is on its way
			continue
		}
	}
	for range 20 {
		if got, err := fetch(k.ctx(), url); err != nil || got != "b" {
			t.Errorf("WL-10 a connection goes to %q (%v)", got, err)
		}
	}
	k.leads(s, map[string]int32{"http": 8080})
	k.asks(url, refused)
	k.must(k.Client.CoreV1().Services(k.Namespace).Delete(k.ctx(), "web", metav1.DeleteOptions{}))
	k.asks(byNode[0], refused)
}

// WL-09: with session affinity a client stays with the endpoint that it has come to, while that is there.
func TestServiceAffinity(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	a, b := k.web("a"), k.web("b")
	s := k.service(`
metadata: {name: web}
spec: {sessionAffinity: ClientIP, ports: [{name: http, port: 80}]}
`)
	url := "http://" + s.Spec.ClusterIP + "/hostname"
	k.leads(s, map[string]int32{"http": 8080}, a, b)
	var first string
	k.asks(url, func(got string, err error) bool { first = got; return err == nil })
	for range 20 {
		if got, err := fetch(k.ctx(), url); err != nil || got != first {
			t.Errorf("WL-09 a client of %s comes to %q (%v)", first, got, err)
		}
	}
	left, other := a, "a"
	if first == "a" {
		left, other = b, "b"
	}
	k.leads(s, map[string]int32{"http": 8080}, left)
	k.asks(url, says(other))
	k.leads(s, map[string]int32{"http": 8080}, a, b)
	for range 20 {
		if got, err := fetch(k.ctx(), url); err != nil || got != other {
			t.Errorf("WL-09 a client of %s comes to %q (%v)", other, got, err)
		}
	}
}

// WL-10: a UDP client that goes on sending from the same port is answered by the endpoint that there is now.
func TestServiceUDPMoves(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	pod := func(name string) *corev1.Pod {
		return k.up("metadata: {name: " + name + `}
spec: {containers: [{name: udp, image: tool, args: [udp, ":9001"]}, {name: web, image: tool, args: [http, ":8080"], readinessProbe: {tcpSocket: {port: 8080}}}]}
`)
	}
	a, b := pod("a"), pod("b")
	s := k.service(`
metadata: {name: echo}
spec: {ports: [{name: echo, port: 9, protocol: UDP}]}
`)
	conn, err := net.Dial("udp", net.JoinHostPort(s.Spec.ClusterIP, "9"))
	k.must(err)
	defer conn.Close()
	answered := func() bool {
		buf := make([]byte, 16)
		for end := time.Now().Add(Timeout); time.Now().Before(end); {
			k.must(conn.SetDeadline(time.Now().Add(100 * time.Millisecond)))
			if _, err := conn.Write([]byte("ping")); err != nil {
				continue
			}
			if n, err := conn.Read(buf); err == nil && string(buf[:n]) == "ping" {
				return true
			}
		}
		return false
	}
	k.leads(s, map[string]int32{"echo": 9001}, a)
	if !answered() {
		t.Fatal("WL-09 nobody answers")
	}
	k.leads(s, map[string]int32{"echo": 9001}, b)
	k.Delete("a")
	k.WaitGone(a)
	if !answered() {
		t.Error("WL-10 a flow does not move to the endpoint that is left")
		flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
		for _, f := range flows {
			if f.Forward.DstIP.String() == s.Spec.ClusterIP {
				t.Log(f)
			}
		}
		t.Logf("%d flows (%v); %v goes on as %v", len(flows), err, conn.RemoteAddr(), conn.LocalAddr())
	}
}

// WL-12, RS-09: requests through a Service go on while the server is killed and started again, none is lost; and rules that somebody
// flushes are back within a second.
func TestServiceOutlivesServer(t *testing.T) {
	t.Parallel()
	srv := own(t, ServerOptions{Args: []string{"--service-cidr", "10.98.80.0/24"}})
	k := kitOn(t, srv)
	a, b := k.web("a"), k.web("b")
	s := k.service(`
metadata: {name: web}
spec: {ports: [{name: http, port: 80}]}
`)
	url := "http://" + s.Spec.ClusterIP + "/hostname"
	k.leads(s, map[string]int32{"http": 8080}, a, b)
	k.asks(url, says("a"))

	var sent, lost atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			sent.Add(1)
			resp, err := client.Get(url)
			if err != nil {
				lost.Add(1)
				t.Logf("request %d: %v", sent.Load(), err)
				continue
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}()
	srv.Kill()
	k.must(srv.Start(k.ctx()))
	k.leads(s, map[string]int32{"http": 8080}, b) // what was known before the start is changed after it
	k.asks(url, says("b"))
	close(stop)
	<-done
	if n := lost.Load(); n > 0 {
		t.Errorf("WL-12 %d of %d requests were lost", n, sent.Load())
	}
	t.Logf("%d requests", sent.Load())

	conn, err := nftables.New()
	k.must(err)
	found, err := conn.ListTablesOfFamily(nftables.TableFamilyINet)
	k.must(err)
	for _, table := range found {
		// Only this server's: others run beside it.
		if sets, err := conn.GetSetElements(&nftables.Set{Table: table, Name: "cluster4"}); err == nil && strings.HasPrefix(table.Name, "wherry-") {
			for _, e := range sets {
				if net.IP(e.Key[:4]).String() == s.Spec.ClusterIP {
					conn.DelTable(table)
				}
			}
		}
	}
	k.must(conn.Flush())
	start := time.Now()
	k.asks(url, says("b"))
	if took := time.Since(start); took > time.Second {
		t.Errorf("RS-09 rules that were flushed are back after %s", took)
	}
}

// WL-09, WL-24: a Service of type LoadBalancer has the machine's address and a node port of its own, and is reached at both; one that wants
// a port that a program has is told whose it is.
func TestServiceBalanced(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	a := k.web("a")
	port := FreePort(t)
	s := k.service(fmt.Sprintf(`
metadata: {name: web}
spec: {type: LoadBalancer, ports: [{name: http, port: %d}]}
`, port))
	k.leads(s, map[string]int32{"http": 8080}, a)
	k.asks(fmt.Sprintf("http://%s:%d/hostname", k.NodeIP, port), says("a"))
	k.asks(fmt.Sprintf("http://127.0.0.1:%d/hostname", s.Spec.Ports[0].NodePort), says("a"))
	k.says("a", "c", fmt.Sprintf("wget -qO- http://%s:%d/hostname", k.NodeIP, port), "a")

	k.service(fmt.Sprintf(`
metadata: {name: greedy}
spec: {type: LoadBalancer, ports: [{name: http, port: %s}]}
`, k.Config.Host[strings.LastIndex(k.Config.Host, ":")+1:]))
	k.WaitEvent("greedy", "NoLoadBalancerAddress", "is in use: ")
	k.KubectlFails("create", "service", "nodeport", "low", "--tcp=80", "--node-port=80").Says("The range of valid ports is 30000-32767; choose one")
	k.KubectlFails("create", "service", "nodeport", "same", "--tcp=80", fmt.Sprintf("--node-port=%d", s.Spec.Ports[0].NodePort)).
		Says("already allocated, to service " + k.Namespace + "/web; choose another")
}
