// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// machine is another machine as far as its network goes: a namespace at the end of a cable, whose way to the world is this machine.
type machine struct {
	address, gateway string   // its own, and this machine's on the cable
	enter            []string // the command that leads there
}

func newMachine(t *testing.T) machine {
	t.Helper()
	o := &outside{}
	var m machine
	done, quit := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and the namespace with it
		l, err := o.build()
		if err == nil {
			l.Close() // its server is not wanted
			err = up(nil, "lo", "127.0.0.1/8")
		}
		if err == nil {
			err = netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(o.gateway)})
		}
		m.enter = []string{"nsenter", fmt.Sprintf("--net=/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())}
		done <- err
		<-quit
	}()
	err := <-done
	t.Cleanup(func() { close(quit) })
	if err != nil {
		t.Fatal(err)
	}
	host, _, err := net.SplitHostPort(o.address)
	if err != nil {
		t.Fatal(err)
	}
	m.address, m.gateway = host, o.gateway
	return m
}

// bootstrap writes the kubeconfig that a machine joins with, which knows the server by that address.
func (k *kit) bootstrap(address string) string {
	k.t.Helper()
	line := k.told("token", "create", "--print-join-command")
	encoded := between(line, "echo ", " |")
	text, err := base64.StdEncoding.DecodeString(strings.Trim(encoded, `"' `))
	k.must(err)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(k.Config.Host, "https://"))
	k.must(err)
	was := between(string(text), "server: ", "\n")
	file := filepath.Join(k.t.TempDir(), "wherry-bootstrap.yaml")
	k.must(os.WriteFile(file, []byte(strings.Replace(string(text), was, "https://"+net.JoinHostPort(address, port), 1)), 0o600))
	return file
}

// approved approves the serving certificate that a node asks for, so that the server speaks with it.
func (k *kit) approved(node string) {
	k.t.Helper()
	of := func(r *certificatesv1.CertificateSigningRequest) bool {
		return r.Spec.SignerName == certificatesv1.KubeletServingSignerName && r.Spec.Username == "system:node:"+node
	}
	r := k.request("is for the node's API", of)
	k.Kubectl("certificate", "approve", r.Name).Has("approved")
	k.request("is issued", func(now *certificatesv1.CertificateSigningRequest) bool {
		return of(now) && len(now.Status.Certificate) > 0
	})
}

// routeTo says by which address this machine reaches a network; empty: by none of its own.
func routeTo(t *testing.T, network string) string {
	t.Helper()
	_, want, err := net.ParseCIDR(network)
	if err != nil {
		t.Fatal(err)
	}
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Dst: want}, netlink.RT_FILTER_DST)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		if r.Gw != nil {
			return r.Gw.String()
		}
	}
	return ""
}

// TestSeveralNodes: WL-20 an agent on another machine joins a wherry server: pods reach one another across the two by their own addresses, by
// services and their names, node ports of either machine lead to pods of both, and network policies hold on both, also while the agent is
// gone; a node that is deleted is not reached any more.
func TestSeveralNodes(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	srv := own(t, ServerOptions{Args: []string{"--bind-address", "0.0.0.0", "--node-ip", m.gateway, "--secure-port", strconv.Itoa(FreePort(t)),
		"--service-cidr", "10.98.83.0/24"}})
	k := kitOn(t, srv)
	const second = "wherry-second"
	flags := []string{"--rotate-server-certificates", "--kubelet-port", strconv.Itoa(FreePort(t))} // the same at each start
	agent := joinedIn(t, srv, m.enter, second, append(flags, "--bootstrap-kubeconfig", k.bootstrap(m.gateway))...)
	k.approved(second)
	node, err := k.Client.CoreV1().Nodes().Get(k.ctx(), second, metav1.GetOptions{})
	k.must(err)
	if len(node.Spec.PodCIDRs) != 1 || node.Status.Addresses[0].Address != m.address {
		t.Fatalf("the node has the networks %v and the addresses %v", node.Spec.PodCIDRs, node.Status.Addresses)
	}
	network := node.Spec.PodCIDRs[0]
	if via := routeTo(t, network); via != m.address {
		t.Errorf("this machine reaches %s by %q", network, via)
	}

	on := map[string]string{"here": srv.NodeName, "there": second}
	pods := map[string]*corev1.Pod{}
	for at, name := range on {
		pods[at] = k.up(fmt.Sprintf(`
metadata: {name: web-%s, labels: {app: web}}
spec:
  nodeName: %s
  containers:
  - {name: web, image: tool, args: [http, ":8080"], readinessProbe: {tcpSocket: {port: 8080}}}
`, at, name))
		for _, kind := range []string{"friend", "stranger"} {
			k.up(fmt.Sprintf(`
metadata: {name: %s-%s, labels: {kind: %s}}
spec: {nodeName: %s, containers: [{name: c, command: [sh, -c, IDLE]}]}
`, kind, at, kind, name))
		}
	}
	if ip := pods["there"].Status.PodIP; !contains(t, network, ip) {
		t.Errorf("the pod there has the address %s, outside of %s", ip, network)
	}
	nodePort := 30000 + FreePort(t)%2768
	s := k.service(fmt.Sprintf(`
metadata: {name: web}
spec: {type: NodePort, selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080, nodePort: %d}]}
`, nodePort))
	reach := func(when string) {
		t.Helper()
		for at := range on {
			for _, p := range pods {
				k.passes("friend-"+at, "http://"+p.Status.PodIP+":8080/hostname", true)
			}
			both(t, when, "from a pod "+at+", by the service's name", func() string {
				return k.sh("friend-"+at, "c", "timeout 2 wget -qO- http://web/hostname || true")
			})
		}
		for _, url := range []string{
			fmt.Sprintf("http://127.0.0.1:%d/hostname", nodePort), fmt.Sprintf("http://%s:%d/hostname", m.gateway, nodePort),
			fmt.Sprintf("http://%s:%d/hostname", m.address, nodePort), "http://" + s.Spec.ClusterIP + "/hostname",
		} {
			both(t, when, url, func() string {
				answer, err := fetch(k.ctx(), url)
				if err != nil {
					t.Logf("%s: %s: %v", when, url, err)
				}
				return answer
			})
		}
	}
	reach("at first")

	k.objects(`
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: friends}
spec: {podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {kind: friend}}}]}]}
`)
	policies := func() {
		t.Helper()
		for at := range on {
			for _, p := range pods {
				url := "http://" + p.Status.PodIP + ":8080/hostname"
				k.passes("stranger-"+at, url, false)
				k.passes("friend-"+at, url, true)
			}
		}
	}
	policies()
	agent.Kill()
	k.says("friend-here", "c", "timeout 5 wget -qO- http://"+pods["there"].Status.PodIP+":8080/hostname", "web-there")
	k.passes("stranger-here", "http://"+pods["there"].Status.PodIP+":8080/hostname", false)
	agent.startAgent(t, append(flags, "--kubeconfig", filepath.Join(agent.DataDir, "agent.kubeconfig"))...)
	for end := time.Now().Add(Timeout); strings.Count(agent.Log(), "server is ready") < 2 && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond) // it tells a service manager, which it has not got here
	}
	policies()
	for _, p := range pods {
		now := k.Get(p.Name)
		if now.UID != p.UID || now.Status.PodIP != p.Status.PodIP || Status(now, "web").RestartCount != 0 {
			t.Errorf("SC-20 after a kill -9 of the agent: %s", summary(now))
		}
	}

	k.must(agent.Stop())
	k.Kubectl("delete", "node", second)
	for end := time.Now().Add(Timeout); routeTo(t, network) != "" && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond) // the test is told of no route that goes
	}
	if via := routeTo(t, network); via != "" {
		t.Errorf("the deleted node's pods are reached by %s still", via)
	}
}

// both checks that asking again and again gives the answers of both pods.
func both(t *testing.T, when, what string, ask func() string) {
	t.Helper()
	got := map[string]int{}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		got[ask()]++
		if got["web-here"] > 0 && got["web-there"] > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond) // the kernel tells nobody when a rule has its effect
	}
	t.Errorf("WL-20 %s, %s: %v", when, what, got)
}

func contains(t *testing.T, network, ip string) bool {
	t.Helper()
	_, n, err := net.ParseCIDR(network)
	if err != nil {
		t.Fatal(err)
	}
	return n.Contains(net.ParseIP(ip))
}
