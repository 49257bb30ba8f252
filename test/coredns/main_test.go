// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/coredns/caddy"
	_ "github.com/coredns/coredns/core/dnsserver" // these name themselves to it
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	"github.com/miekg/dns"
	"k8s.io/klog/v2"

	"github.com/wherryproject/wherry/test/e2e"
)

// world is what the test runs on, which only TestMain writes; nil: it cannot run.
var world *e2e.World

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "coredns:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "coredns: skipped: the tests make containers; they need root")
		return m.Run(), nil
	}
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	caddy.Quiet = true
	// The harness finds the binary and builds its programs in the main module.
	if err := os.Chdir("../e2e"); err != nil {
		return 1, err
	}
	if world, err = e2e.NewWorld(context.Background()); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	return m.Run(), nil
}

// newServer is a server whose services are in a network, and whose resolver asks the one of a resolv.conf for names
// that are not the cluster's.
func newServer(t *testing.T, services, resolvConf string) *e2e.Server {
	t.Helper()
	srv, err := e2e.NewServer(t.Context(), world, e2e.ServerOptions{Args: []string{"--service-cidr", services,
		"--resolv-conf", resolvConf}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Purge(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return srv
}

// startCoreDNS has CoreDNS look at a server too, with the settings that kubeadm gives it, and returns where it answers.
func startCoreDNS(t *testing.T, srv *e2e.Server, resolvConf string) (address string) {
	t.Helper()
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = free.LocalAddr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)
	corefile := fmt.Sprintf(`.:%s {
    bind 127.0.0.1
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        kubeconfig %s
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    forward . %s
    cache 30 {
        disable success cluster.local
        disable denial cluster.local
    }
}
`, port, filepath.Join(srv.DataDir, "kubeconfig"), resolvConf)
	instance, err := caddy.Start(caddy.CaddyfileInput{Filepath: "Corefile", Contents: []byte(corefile), ServerTypeName: "dns"})
	if err != nil {
		t.Fatalf("CoreDNS: %v", err)
	}
	t.Cleanup(func() {
		instance.ShutdownCallbacks()
		if err := instance.Stop(); err != nil {
			t.Error(err)
		}
	})
	return address
}

// machineResolver starts the resolver that the machine has, and returns the resolv.conf that names it. What is below
// example has the address 192.0.2.99, but for alias.example, which is another name of www.example, and what begins with
// nope.
func machineResolver(t *testing.T) (resolvConf string) {
	t.Helper()
	pid := os.Getpid()
	ip := fmt.Sprintf("127.54.%d.%d", pid>>8&0xff, max(pid&0xff, 1))
	conn, err := net.ListenPacket("udp", net.JoinHostPort(ip, "53"))
	if err != nil {
		t.Fatal(err)
	}
	served := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(outside)}
	go func() { _ = served.ActivateAndServe() }()
	t.Cleanup(func() { _ = served.Shutdown() })
	resolvConf = filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(resolvConf, []byte("nameserver "+ip+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return resolvConf
}

func outside(w dns.ResponseWriter, req *dns.Msg) {
	var m dns.Msg
	m.SetReply(req)
	m.RecursionAvailable = true
	q := req.Question[0]
	at := dns.RR_Header{Name: q.Name, Class: dns.ClassINET, Ttl: 60}
	address := func(name string) dns.RR {
		at := at
		at.Name, at.Rrtype = name, dns.TypeA
		return &dns.A{Hdr: at, A: net.IPv4(192, 0, 2, 99)}
	}
	switch {
	case !dns.IsSubDomain("example.", q.Name) || dns.IsSubDomain("nope.example.", q.Name):
		m.Rcode = dns.RcodeNameError
	case q.Name == "alias.example.":
		at.Rrtype = dns.TypeCNAME
		m.Answer = append(m.Answer, &dns.CNAME{Hdr: at, Target: "www.example."})
		if q.Qtype == dns.TypeA {
			m.Answer = append(m.Answer, address("www.example."))
		}
	case q.Qtype == dns.TypeA:
		m.Answer = append(m.Answer, address(q.Name))
	case q.Qtype == dns.TypeMX:
		at.Rrtype = dns.TypeMX
		m.Answer = append(m.Answer, &dns.MX{Hdr: at, Preference: 10, Mx: "mail.example."})
	case q.Qtype == dns.TypeTXT:
		at.Rrtype = dns.TypeTXT
		m.Answer = append(m.Answer, &dns.TXT{Hdr: at, Txt: []string{"one", "two"}})
	}
	_ = w.WriteMsg(&m)
}
