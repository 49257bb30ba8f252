// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/internal/timeline"
)

// machineResolver is a resolver of the tests' on loopback, and the resolv.conf that names it. Each name that ends in .example has the
// address 192.0.2.99, and no other name is there.
type machineResolver struct {
	conf  string
	asked atomic.Int32
}

// newMachineResolver starts one at an address of loopback that no other process of the tests takes.
func newMachineResolver(t *testing.T) *machineResolver {
	t.Helper()
	pid := os.Getpid()
	ip := fmt.Sprintf("127.53.%d.%d", pid>>8&0xff, max(pid&0xff, 1))
	conn, err := net.ListenPacket("udp", net.JoinHostPort(ip, "53"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	r := &machineResolver{conf: filepath.Join(t.TempDir(), "resolv.conf")}
	if err := os.WriteFile(r.conf, []byte("search corp.example\nnameserver "+ip+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			r.asked.Add(1)
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			q := m.Questions[0]
			switch name := q.Name.String(); {
			case !strings.HasSuffix(name, ".example.") || strings.HasPrefix(name, "nope."):
				m.RCode = dnsmessage.RCodeNameError
			case q.Type == dnsmessage.TypeA:
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60}, Body: &dnsmessage.AResource{A: [4]byte{192, 0, 2, 99}}}}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(out, from)
			}
		}
	}()
	return r
}

// objects creates what a YAML text describes, with the real kubectl.
func (k *kit) objects(text string) {
	k.t.Helper()
	file := filepath.Join(k.t.TempDir(), "objects.yaml")
	k.must(os.WriteFile(file, []byte(text), 0o644))
	k.Kubectl("apply", "-f", file)
}

// resolves checks what a pod is told of a name: the records of the answer, in any form that busybox prints.
func (k *kit) resolves(pod, kind, name string, want ...string) {
	k.t.Helper()
	out, errs, _ := k.exec(pod, "c", "nslookup", "-type="+kind, name)
	_, answer, _ := strings.Cut(out, "\n\n") // behind who was asked
	for _, w := range want {
		if !strings.Contains(answer, w) && !strings.Contains(errs+out, w) {
			k.t.Errorf("WL-13 in %s, %s %s: no %q in\n%s%s", pod, kind, name, w, out, errs)
		}
	}
}

// WL-13, PL-12: pods look names up: services with an address, headless ones, ports, other names, names outside of the cluster, and what is
// not there; on the bridge, on the host's network, and the machine itself. A service that is deleted is gone within a second.
func TestNames(t *testing.T) {
	t.Parallel()
	outside := newMachineResolver(t)
	s := own(t, ServerOptions{Args: []string{"--service-cidr", "10.98.81.0/24", "--resolv-conf", outside.conf}})
	k := kitOn(t, s)
	pod := k.up(`
metadata: {name: p}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.up(`
metadata: {name: host}
spec: {hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.up(`
metadata: {name: default}
spec: {dnsPolicy: Default, containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.objects(`
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: 10.98.81.77, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, ports: [{name: sql, port: 5432}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
ports: [{name: sql, port: 5432, protocol: TCP}]
endpoints: [{addresses: [10.1.2.3], hostname: db-0}, {addresses: [10.1.2.4]}, {addresses: [10.1.2.5], conditions: {ready: false}}]
---
apiVersion: v1
kind: Service
metadata: {name: ext}
spec: {type: ExternalName, externalName: www.example}
`)
	full := "." + k.Namespace + ".svc.cluster.local"
	k.says("p", "c", "cat /etc/resolv.conf", "search "+k.Namespace+".svc.cluster.local svc.cluster.local cluster.local corp.example\nnameserver 10.98.81.10\noptions ndots:5")
	k.says("default", "c", "grep -c 10.98.81.10 /etc/resolv.conf || true", "0")
	for _, p := range []string{"p", "host"} {
		k.resolves(p, "a", "kubernetes.default.svc.cluster.local", "10.98.81.1")
		k.resolves(p, "a", "web"+full, "10.98.81.77")
		k.resolves(p, "a", "db"+full, "10.1.2.3", "10.1.2.4")
		k.resolves(p, "a", "db-0.db"+full, "10.1.2.3")
		k.resolves(p, "srv", "_sql._tcp.db"+full, "5432 db-0.db"+full)
		k.resolves(p, "a", "ext"+full, "www.example", "192.0.2.99")
		k.resolves(p, "a", "www.example", "192.0.2.99")
		k.resolves(p, "a", "nope.example", "NXDOMAIN")
		k.resolves(p, "a", "nope"+full, "NXDOMAIN")
		k.resolves(p, "ptr", "77.81.98.10.in-addr.arpa", "web"+full)
		k.resolves(p, "txt", "dns-version.cluster.local", "1.1.0")
	}
	// by its short name, as programs do, through the C library's way
	k.says("p", "c", "ping -c1 -w1 db-0.db 2>&1 | sed -n 's/^PING[^(]*(\\([0-9.]*\\)).*/\\1/p'", "10.1.2.3")
	if got, _, err := lookUp("10.98.81.10:53", "web"+full); err != nil || got != "10.98.81.77" {
		t.Errorf("WL-13 the machine itself is told %q (%v)", got, err)
	}
	if out, _, _ := k.exec("p", "c", "nslookup", "-type=a", "db"+full); strings.Contains(out, "10.1.2.5") {
		t.Errorf("WL-13 an endpoint that is not ready has a name:\n%s", out)
	}

	t.Run("WL-13 a service that is deleted is gone within a second", func(t *testing.T) {
		k.must(k.Client.CoreV1().Services(k.Namespace).Delete(k.ctx(), "web", metav1.DeleteOptions{}))
		deleted := time.Now()
		for {
			_, code, err := lookUp("10.98.81.10:53", "web"+full)
			if err == nil && code == dnsmessage.RCodeNameError {
				break
			}
			if time.Since(deleted) > Timeout {
				t.Fatalf("it is not gone: %v, %v", code, err)
			}
		}
		if took := time.Since(deleted); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})

	t.Run("WL-14 which pod has asked for which name", func(t *testing.T) {
		out := s.run(t, "", "timeline", "-n", k.Namespace, "p", "--names", "-o", "json")
		var h timeline.History
		if err := json.Unmarshal([]byte(out), &h); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		told := map[string]string{}
		for _, n := range h.Names {
			told[n.Name+" "+n.Type] = n.Code + " " + strings.Join(n.Answer, ",")
		}
		for name, want := range map[string]string{"web" + full + " A": "NOERROR 10.98.81.77", "nope.example A": "NXDOMAIN ",
			"ext" + full + " A": "NOERROR -> www.example,192.0.2.99"} {
			if told[name] != want {
				t.Errorf("%s: %q, want %q", name, told[name], want)
			}
		}
		if h.UID != string(pod.UID) {
			t.Errorf("it is the timeline of %s", h.UID)
		}
		if out := s.run(t, "", "timeline", "-n", k.Namespace, "default", "--names"); !strings.Contains(out, "no name") {
			t.Errorf("a pod that asks another resolver:\n%s", out)
		}
	})
}

// run runs a command of the server's, which must succeed, and returns its output.
func (s *Server) run(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := s.Wherry(t.Context(), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("wherry %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// lookUp asks a resolver for the address of a name.
func lookUp(at, name string) (string, dnsmessage.RCode, error) {
	q := dnsmessage.Message{Header: dnsmessage.Header{ID: 1, RecursionDesired: true}, Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name + "."),
		Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	packet, err := q.Pack()
	if err != nil {
		return "", 0, err
	}
	c, err := net.Dial("udp", at)
	if err != nil {
		return "", 0, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(Timeout)); err != nil {
		return "", 0, err
	}
	if _, err := c.Write(packet); err != nil {
		return "", 0, err
	}
	out := make([]byte, 1232)
	n, err := c.Read(out)
	if err != nil {
		return "", 0, err
	}
	var m dnsmessage.Message
	if err := m.Unpack(out[:n]); err != nil || len(m.Answers) == 0 {
		return "", m.RCode, err
	}
	if a, ok := m.Answers[0].Body.(*dnsmessage.AResource); ok {
		return net.IP(a.A[:]).String(), m.RCode, nil
	}
	return "", m.RCode, nil
}

// resolverPID is the process that answers the pods of a server; 0 if there is none.
func (s *Server) resolverPID(t *testing.T) int {
	t.Helper()
	all, err := processesWith("resolve-names " + s.DataDir + "/")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		return 0
	}
	pid, _, _ := strings.Cut(strings.TrimPrefix(all[0], "process "), ":")
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatalf("%q: %v", all[0], err)
	}
	return n
}

// WL-12, WL-13: names go on without any interruption while the server is killed, is away, is back, and is replaced by another program,
// whose resolver takes over; a resolver that is killed is started again, and knows names of services that came meanwhile. Two servers on
// one machine each answer their own pods. A server that ends without pods leaves none.
func TestNamesOutliveTheServer(t *testing.T) {
	t.Parallel()
	s := own(t, ServerOptions{Args: []string{"--service-cidr", "10.98.79.0/24"}})
	other := own(t, ServerOptions{Args: []string{"--service-cidr", "10.98.79.0/24", "--cluster-domain", "other.example"}})
	k, k2 := kitOn(t, s), kitOn(t, other)
	for _, k := range []*kit{k, k2} {
		k.up(`
metadata: {name: p}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	}
	k2.resolves("p", "a", "kubernetes.default.svc.other.example", "10.98.79.1")
	k2.resolves("p", "a", "kube-dns.kube-system.svc.other.example", "10.98.79.10")

	// a client in the pod that asks all the time, and counts what is not answered
	const ask = `nslookup -type=a kubernetes.default.svc.cluster.local >/dev/null 2>&1`
	k.sh("p", "c", "echo 0 > /tmp/n; rm -f /tmp/failed; (while [ ! -e /tmp/stop ]; do "+ask+" && echo $(($(cat /tmp/n)+1)) > /tmp/m && mv /tmp/m /tmp/n || date >> /tmp/failed; done; touch /tmp/done) >/dev/null 2>&1 &")
	first := s.resolverPID(t)
	if first == 0 {
		t.Fatal("there is no resolver")
	}
	s.Kill()
	if got, _, err := lookUp("10.98.79.10:53", "kubernetes.default.svc.cluster.local"); err != nil && got == "" {
		t.Errorf("WL-12 without the server: %q, %v", got, err)
	}
	k.again()
	if now := s.resolverPID(t); now != first {
		t.Errorf("WL-12 the resolver is process %d; it was %d", now, first)
	}
	k.must(s.Stop())
	if now := s.resolverPID(t); now != first {
		t.Errorf("WL-12 with pods and without a server the resolver is process %d; it was %d", now, first)
	}
	world := s.World
	t.Cleanup(func() { s.World = world }) // the other file is gone by then
	newer := *world
	newer.Wherry = filepath.Join(t.TempDir(), "wherry") // another file is another program
	k.must(copyProgram(world.Wherry, newer.Wherry))
	s.World = &newer
	k.again()
	if now := s.resolverPID(t); now == first || now == 0 {
		t.Errorf("WL-12 with another program the resolver is process %d still", now)
	}
	k.says("p", "c", "touch /tmp/stop; while [ ! -e /tmp/done ]; do usleep 10000; done; [ $(cat /tmp/n) -gt 20 ] && cat /tmp/failed 2>/dev/null; true", "")

	if err := unix.Kill(s.resolverPID(t), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	k.objects("apiVersion: v1\nkind: Service\nmetadata: {name: late}\nspec: {clusterIP: 10.98.79.55, ports: [{port: 80}]}\n")
	k.says("p", "c", "for i in $(seq 100); do nslookup -type=a late."+k.Namespace+".svc.cluster.local 2>/dev/null | grep -q 10.98.79.55 && echo known && break; usleep 100000; done", "known")

	p := k.Get("p")
	k.Delete("p")
	k.WaitGone(p)
	pid := s.resolverPID(t)
	k.must(s.Stop())
	awaitDeath(t, pid)
	k.again()
}

// WL-13: with --dns=none nobody answers, service kube-dns is the user's to make, and pods are told of --cluster-dns.
func TestNamesOff(t *testing.T) {
	t.Parallel()
	s := own(t, ServerOptions{Args: []string{"--service-cidr", "10.98.80.0/24"}})
	get := func() error {
		_, err := s.Client.CoreV1().Services("kube-system").Get(t.Context(), "kube-dns", metav1.GetOptions{})
		return err
	}
	if err := get(); err != nil {
		t.Errorf("there is no service kube-dns: %v", err)
	}
	pid := s.resolverPID(t)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s.opts.Args = append(s.opts.Args, "--dns=none", "--cluster-dns", "10.98.80.99")
	if err := s.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	awaitDeath(t, pid)
	k := kitOn(t, s)
	if err := get(); err == nil {
		t.Error("service kube-dns is there still")
	}
	k.up(`
metadata: {name: p}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.says("p", "c", "grep nameserver /etc/resolv.conf", "nameserver 10.98.80.99")
	// somebody's own resolver, of which the next server keeps its hands off
	var svc corev1.Service
	k.must(yaml.Unmarshal([]byte("metadata: {name: kube-dns}\nspec: {clusterIP: 10.98.80.99, selector: {k8s-app: mine}, ports: [{port: 53, protocol: UDP}]}"), &svc))
	_, err := s.Client.CoreV1().Services("kube-system").Create(t.Context(), &svc, metav1.CreateOptions{})
	k.must(err)
	k.must(s.Stop())
	s.opts.Args = []string{"--service-cidr", "10.98.80.0/24"}
	k.again()
	k.up(`
metadata: {name: q}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.says("q", "c", "grep nameserver /etc/resolv.conf", "nameserver 10.98.80.99")
	if log := s.Log(); !strings.Contains(log, "was not made by wherry") {
		t.Errorf("the server does not say so:\n%s", s.LogTail(20))
	}
}

// WL-13: a machine whose only resolver is this cluster's own is told so, and names of the cluster are answered all the same.
func TestNamesLoop(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver 10.98.81.10\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := own(t, ServerOptions{Args: []string{"--service-cidr", "10.98.81.0/24", "--resolv-conf", conf}})
	k := kitOn(t, s)
	k.up(`
metadata: {name: p}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.resolves("p", "a", "www.example", "SERVFAIL")
	k.resolves("p", "a", "kubernetes.default.svc.cluster.local", "10.98.81.1")
	for end := time.Now().Add(Timeout); !strings.Contains(s.Log(), "10.98.81.10, which is this cluster's own resolver"); {
		if time.Now().After(end) {
			t.Fatalf("nobody says that the resolver would ask itself:\n%s", s.LogTail(20))
		}
		k.sh("p", "c", "usleep 100000")
	}
}
