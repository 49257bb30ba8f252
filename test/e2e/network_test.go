// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PL-12: pods reach each other, the machine reaches pods, and pods reach the machine.
func TestNetworkReach(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	web := k.up(`
metadata: {name: web}
spec: {containers: [{name: c, image: tool, args: [http, ":8080"], readinessProbe: {tcpSocket: {port: 8080}}}]}
`)
	k.up(`
metadata: {name: other}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	host := "http://" + net.JoinHostPort(web.Status.PodIP, "8080")
	if got, err := fetch(k.ctx(), host+"/hostname"); err != nil || got != "web" {
		t.Errorf("PL-12 the machine gets %q from the pod (%v)", got, err)
	}
	k.says("other", "c", "wget -qO- "+host+"/hostname", "web")
	from := make(chan string, 1)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from <- r.RemoteAddr
		fmt.Fprint(w, "the machine")
	}))
	l, err := net.Listen("tcp", net.JoinHostPort(k.NodeIP, "0"))
	k.must(err)
	srv.Listener = l
	srv.Start()
	defer srv.Close()
	k.says("other", "c", "wget -qO- http://"+l.Addr().String(), "the machine")
	t.Logf("the machine saw the pod as %s", <-from)
	k.says("other", "c", "ip -o link | grep -c '[0-9]: '; ip -o route | grep -c ^default", "2\n1")
}

// PL-12: what leaves the node is masqueraded, what goes to another pod is not. A network namespace of the test's own plays the
// world outside; it knows no way back to pods.
func TestNetworkMasquerade(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	outside := newOutside(t)
	pod := k.up(`
metadata: {name: p}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	echo := k.up(`
metadata: {name: echo}
spec: {containers: [{name: tcp, image: tool, args: [tcp, ":9000"]}, {name: c, command: [sh, -c, IDLE]}]}
`)
	k.says("p", "c", "wget -qO- http://"+outside.address, outside.gateway)
	// The connection's far end, as the kernel of the other pod has it: the pod's own address.
	hex := hexAddress(t, pod.Status.PodIP)
	k.sh("p", "c", "(sleep 10 | nc "+echo.Status.PodIP+" 9000) >/dev/null 2>&1 &")
	k.says("echo", "c", "for i in $(seq 80); do grep -q "+hex+" /proc/net/tcp* && echo seen && break; usleep 100000; done", "seen")
}

// hexAddress writes an IPv4 address as /proc/net/tcp does.
func hexAddress(t *testing.T, ip string) string {
	t.Helper()
	b := net.ParseIP(ip).To4()
	if b == nil {
		t.Skip("not an IPv4 node")
	}
	return fmt.Sprintf("%02X%02X%02X%02X:", b[3], b[2], b[1], b[0])
}

// PL-12: host ports, TCP and UDP, from the machine's own address and from loopback; closed again when the pod is gone.
func TestNetworkHostPort(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	tcp, udp := FreePort(t), FreePort(t)
	fill := strings.NewReplacer("TCP", strconv.Itoa(tcp), "UDP", strconv.Itoa(udp))
	text := fill.Replace(`
spec:
  containers:
  - {name: http, image: tool, args: [http, ":8080"], ports: [{containerPort: 8080, hostPort: TCP}], readinessProbe: {tcpSocket: {port: 8080}}}
  - {name: udp, image: tool, args: [udp, ":9001"], ports: [{containerPort: 9001, hostPort: UDP, protocol: "`) + `UDP"}]}
`
	k.up("metadata: {name: first}" + text)
	for _, ip := range []string{k.NodeIP, "127.0.0.1"} {
		if got, err := fetch(k.ctx(), fmt.Sprintf("http://%s/hostname", net.JoinHostPort(ip, strconv.Itoa(tcp)))); err != nil || got != "first" {
			t.Errorf("PL-12 TCP %s:%d gives %q (%v)", ip, tcp, got, err)
		}
	}
	conn, err := net.Dial("udp", net.JoinHostPort(k.NodeIP, strconv.Itoa(udp)))
	k.must(err)
	defer conn.Close()
	// A datagram that comes before the program listens is refused or lost, as anywhere: it is sent again.
	buf, n := make([]byte, 16), 0
	for end := time.Now().Add(10 * time.Second); n == 0 && time.Now().Before(end); {
		k.must(conn.SetDeadline(time.Now().Add(200 * time.Millisecond)))
		if _, err = conn.Write([]byte("ping")); err == nil {
			n, err = conn.Read(buf)
		}
	}
	if string(buf[:n]) != "ping" {
		t.Errorf("PL-12 UDP port %d sends back %q (%v)", udp, buf[:n], err)
	}

	t.Run("PL-15 a second pod waits for the port, in words", func(t *testing.T) {
		k.pod("metadata: {name: second}" + text)
		p := k.Wait("second", "be unschedulable", func(p *corev1.Pod) bool { return Condition(p, corev1.PodScheduled) == corev1.ConditionFalse })
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && (c.Reason != "Unschedulable" || !strings.Contains(c.Message, "port")) {
				t.Errorf("the condition says %s: %s", c.Reason, c.Message)
			}
		}
		k.WaitEvent("second", "FailedScheduling", "port")
	})
	first := k.Get("first")
	k.Delete("first")
	k.WaitGone(first)
	k.WaitReady("second")
	if got, err := fetch(k.ctx(), fmt.Sprintf("http://%s/hostname", net.JoinHostPort(k.NodeIP, strconv.Itoa(tcp)))); err != nil || got != "second" {
		t.Errorf("PL-12 after the first pod is gone the port gives %q (%v)", got, err)
	}
	second := k.Get("second")
	k.Delete("second")
	k.WaitGone(second)
	if got, err := fetch(k.ctx(), fmt.Sprintf("http://%s/", net.JoinHostPort(k.NodeIP, strconv.Itoa(tcp)))); err == nil {
		t.Errorf("PL-12 the port still answers after both pods are gone: %q", got)
	}
}

// A host port that something else listens on, the API server for one, stays whose it is; the pod waits and says who has it, and gets it
// once it is free (RS-10).
// ATTACK A15.
func TestNetworkHostPortInUse(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	api, err := url.Parse(k.Config.Host)
	k.must(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	k.must(err)
	defer l.Close()
	_, mine, err := net.SplitHostPort(l.Addr().String())
	k.must(err)
	const spec = "metadata: {name: NAME}\nspec: {containers: [{name: c, image: tool, args: [http, ':8080'], ports: [{containerPort: 8080, hostPort: PORT}]}]}"
	for name, port := range map[string]string{"api": api.Port(), "mine": mine} {
		k.pod(strings.NewReplacer("NAME", name, "PORT", port).Replace(spec))
	}
	k.WaitEvent("api", "FailedCreatePodSandBox", api.Port()+"/tcp is in use on this machine: wherry (pid ")
	k.WaitEvent("mine", "FailedCreatePodSandBox", fmt.Sprintf("(pid %d) listens on 127.0.0.1:%s", os.Getpid(), mine))
	if _, err := k.Client.CoreV1().Nodes().List(k.ctx(), metav1.ListOptions{}); err != nil {
		t.Errorf("the API does not answer: %v", err)
	}
	k.must(l.Close())
	k.WaitReady("mine")
}

// PL-12: names: hostname, subdomain, hostAliases and the pod's own address in its hosts file; the resolver's configuration.
func TestNetworkNames(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	plain := k.up(`
metadata: {name: plain}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.says("plain", "c", "hostname; grep "+plain.Status.PodIP+" /etc/hosts", "plain\n"+plain.Status.PodIP+"\tplain")
	named := k.up(`
metadata: {name: named}
spec:
  hostname: db-0
  subdomain: db
  hostAliases: [{ip: 192.0.2.7, hostnames: [one.example, two.example]}]
  dnsPolicy: None
  dnsConfig: {nameservers: [192.0.2.53], searches: [a.example, b.example], options: [{name: ndots, value: "3"}, {name: rotate}]}
  containers:
  - {name: c, command: [sh, -c, IDLE]}
  - {name: d, command: [sh, -c, IDLE]}
`)
	fqdn := "db-0.db." + k.Namespace + ".svc.cluster.local"
	for _, c := range []string{"c", "d"} {
		k.says("named", c, "hostname; grep "+named.Status.PodIP+" /etc/hosts", "db-0\n"+named.Status.PodIP+"\t"+fqdn+"\tdb-0")
		k.says("named", c, "grep 192.0.2.7 /etc/hosts | tr '\\t' ' '", "192.0.2.7 one.example two.example")
		k.says("named", c, "cat /etc/resolv.conf", "search a.example b.example\nnameserver 192.0.2.53\noptions ndots:3 rotate")
	}
	k.says("named", "c", "hostname -f", fqdn)
	k.up(`
metadata: {name: host}
spec: {hostNetwork: true, hostAliases: [{ip: 192.0.2.8, hostnames: [three.example]}], containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.says("host", "c", "grep -c three.example /etc/hosts; grep -c localhost /etc/hosts | awk '{print ($1 > 0)}'", "1\n1")
}
