// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/test/images"
)

const services = "10.98.90.0/24"

const objects = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: 10.98.90.77, ports: [{name: http, port: 80}, {name: dns, port: 53, protocol: UDP}]}
---
apiVersion: v1
kind: Service
metadata: {name: one}
spec: {clusterIP: 10.98.90.78, ports: [{port: 8080}]}
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
ports: [{name: sql, port: 5432, protocol: TCP}, {name: log, port: 514, protocol: UDP}]
endpoints:
- {addresses: [10.1.2.3], hostname: db-0, conditions: {ready: true}}
- {addresses: [10.1.2.4], conditions: {ready: true}}
- {addresses: [10.1.2.5], hostname: db-2, conditions: {ready: false}}
- {addresses: [10.1.2.6], hostname: db-3, conditions: {ready: false, serving: true, terminating: true}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-2, labels: {kubernetes.io/service-name: db}}
addressType: IPv6
ports: [{name: sql, port: 5432, protocol: TCP}]
endpoints:
- {addresses: ["fd00:1::3"], hostname: db-0, conditions: {ready: true}}
- {addresses: ["fd00:1::7"], conditions: {ready: true}}
---
apiVersion: v1
kind: Service
metadata: {name: empty}
spec: {clusterIP: None, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: sub}
spec: {clusterIP: None, selector: {app: p}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: early}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {app: never}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: ext}
spec: {type: ExternalName, externalName: www.example}
---
apiVersion: v1
kind: Service
metadata: {name: extalias}
spec: {type: ExternalName, externalName: alias.example}
---
apiVersion: v1
kind: Service
metadata: {name: extgone}
spec: {type: ExternalName, externalName: nope.example}
---
apiVersion: v1
kind: Service
metadata: {name: extweb}
spec: {type: ExternalName, externalName: web.NS.svc.cluster.local}
---
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: p}}
spec: {hostname: h, subdomain: sub, containers: [{name: c, image: TOOL, args: [http, ":8080"]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: never, labels: {app: never}}
spec: {hostname: never, subdomain: early, containers: [{name: c, image: TOOL, args: [http, ":8080"], readinessProbe: {tcpSocket: {port: 9}, periodSeconds: 60}}]}
`

// questions are what is asked of names: those that end in a dot are whole, the others are of the cluster. NS stands for
// the namespace, POD for the address of a pod with dashes.
const questions = `
kubernetes.default.svc       A AAAA SRV TXT MX NS SOA PTR CNAME HTTPS
_https._tcp.kubernetes.default.svc A AAAA SRV TXT
web.NS.svc                   A AAAA SRV TXT MX NS SOA PTR CNAME HTTPS
WEB.ns.SVC                   A SRV
_http._tcp.web.NS.svc        A AAAA SRV TXT
_dns._udp.web.NS.svc         A SRV
_dns._tcp.web.NS.svc         A SRV
_http._udp.web.NS.svc        SRV
_nope._tcp.web.NS.svc        A SRV
_tcp.web.NS.svc              A SRV
http.tcp.web.NS.svc          SRV
a.web.NS.svc                 A SRV
a.b.web.NS.svc               A
a.b.c.web.NS.svc             A
one.NS.svc                   A SRV
db.NS.svc                    A AAAA SRV TXT MX PTR CNAME HTTPS
db-0.db.NS.svc               A AAAA SRV TXT
10-1-2-4.db.NS.svc           A AAAA SRV
10-1-2-3.db.NS.svc           A
10-1-2-5.db.NS.svc           A
db-2.db.NS.svc               A
db-3.db.NS.svc               A
nope.db.NS.svc               A AAAA
fd00-1--7.db.NS.svc          A AAAA
_sql._tcp.db.NS.svc          A AAAA SRV
_log._udp.db.NS.svc          SRV
_sql._udp.db.NS.svc          SRV
_nope._tcp.db.NS.svc         SRV
empty.NS.svc                 A AAAA SRV
_http._tcp.empty.NS.svc      SRV
x.empty.NS.svc               A
sub.NS.svc                   A AAAA SRV
h.sub.NS.svc                 A AAAA SRV
POD.sub.NS.svc               A
_http._tcp.sub.NS.svc        SRV
early.NS.svc                 A SRV
never.early.NS.svc           A
ext.NS.svc                   A AAAA CNAME SRV TXT MX
extalias.NS.svc              A AAAA CNAME
extgone.NS.svc               A AAAA CNAME
extweb.NS.svc                A AAAA CNAME SRV
x.ext.NS.svc                 A
nope.NS.svc                  A AAAA SRV TXT PTR
web.nope.svc                 A AAAA
NS.svc                       A AAAA SRV NS SOA TXT
nope.svc                     A AAAA
svc                          A AAAA SRV NS SOA TXT
web.NS                       A
nope                         A AAAA SRV
.                            NS SOA A AAAA TXT
dns-version                  TXT A SRV
a.dns-version                TXT
POD.NS.pod                   A AAAA SRV TXT
1-2-3-4.NS.pod               A AAAA
1-2-3-4.nope.pod             A
fd00--1.NS.pod               A AAAA
nonsense.NS.pod              A
1-2-3.NS.pod                 A
NS.pod                       A AAAA
pod                          A
77.90.98.10.in-addr.arpa.    PTR A TXT
1.90.98.10.in-addr.arpa.     PTR
3.2.1.10.in-addr.arpa.       PTR A
4.2.1.10.in-addr.arpa.       PTR
5.2.1.10.in-addr.arpa.       PTR
3.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa. PTR
99.2.0.192.in-addr.arpa.     PTR
www.example.                 A AAAA MX TXT SRV NS HTTPS
alias.example.               A AAAA CNAME
nope.example.                A AAAA MX
elsewhere.test.              A AAAA
web.NS.svc.cluster.local.example. A
one.NS.svc                   AAAA TXT CAA
db-0.db.NS.svc               MX HTTPS CNAME
10-1-2-4.db.NS.svc           TXT PTR
h.sub.NS.svc                 TXT MX
nope.NS.svc                  MX HTTPS CNAME NS
sub.NS.svc                   TXT HTTPS
empty.NS.svc                 TXT HTTPS
extgone.NS.svc               SOA
78.90.98.10.in-addr.arpa.    PTR
10.90.98.10.in-addr.arpa.    PTR
`

// differences are where the two are meant to differ, by what is asked: the name before the namespace is put in, and the
// type; * is any.
var differences = map[string]string{
	"_tcp.web.NS.svc A":             underThere,
	"_tcp.web.NS.svc SRV":           underThere,
	"NS.svc TXT":                    underThere,
	"svc TXT":                       underThere,
	". TXT":                         underThere,
	"http.tcp.web.NS.svc SRV":       "a port's name begins with an underscore (DNS specification, 2.3.2)",
	"db.NS.svc SRV":                 "CoreDNS counts an endpoint once for each family when it weighs",
	"db-0.db.NS.svc SRV":            "CoreDNS counts an endpoint once for each family when it weighs",
	"_sql._tcp.db.NS.svc SRV":       "CoreDNS counts an endpoint once for each family when it weighs",
	"ext.NS.svc SRV":                anyType,
	"ext.NS.svc TXT":                anyType,
	"ext.NS.svc MX":                 anyType,
	"extweb.NS.svc AAAA":            anyType,
	"extweb.NS.svc SRV":             anyType,
	"extgone.NS.svc SOA":            anyType,
	"extgone.NS.svc A":              "what becomes of the last name of a chain is the answer (RFC 6604)",
	"extgone.NS.svc AAAA":           "what becomes of the last name of a chain is the answer (RFC 6604)",
	". NS":                          "CoreDNS looks for itself among the endpoints, where it is not here",
	"POD.NS.pod SRV":                "a pod's name has no ports",
	"1-2-3-4.nope.pod A":            "a namespace in which nothing has a name is not known",
	"77.90.98.10.in-addr.arpa. A":   "the cluster's own addresses are not asked of others",
	"77.90.98.10.in-addr.arpa. TXT": "the cluster's own addresses are not asked of others",
	"3.2.1.10.in-addr.arpa. A":      "the cluster's own addresses are not asked of others",
}

const (
	underThere = "there are names below it, so it is one (RFC 8020)"
	anyType    = "another name is one for records of all types (RFC 1034, 3.6.2)"
)

// TestAgreesWithCoreDNS: WL-13: what CoreDNS answers about a server, with the settings of kubeadm, Wherry's own resolver answers, too.
func TestAgreesWithCoreDNS(t *testing.T) {
	if world == nil {
		t.Skip("the tests make containers; they need root")
	}
	conf := machineResolver(t)
	srv := newServer(t, services, conf)
	s := srv.Space(t)
	s.Apply(strings.NewReplacer("NS", s.Namespace, "TOOL", images.ToolRef).Replace(objects))
	pod := s.WaitReady("p")
	s.Wait("never", "have an address", func(p *corev1.Pod) bool { return p.Status.PodIP != "" })
	theirs, ours := startCoreDNS(t, srv, conf), "10.98.90.10:53"
	names := strings.NewReplacer("NS", s.Namespace, "ns", s.Namespace, "POD", strings.ReplaceAll(pod.Status.PodIP, ".", "-"))
	await(t, names.Replace("never.early.NS.svc.cluster.local."), theirs, ours)

	asked, used := 0, map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(questions)) {
		words := strings.Fields(line)
		for _, kind := range words[1:] {
			asked++
			q := question(names.Replace(words[0]), kind)
			want, got := tell(ask(t, theirs, q)), tell(ask(t, ours, q))
			reason, key := "", ""
			for _, k := range []string{words[0] + " " + kind, words[0] + " *", "* " + kind} {
				if reason == "" && differences[k] != "" {
					reason, key = differences[k], k
				}
			}
			used[key] = used[key] || got != want
			if got != want && reason == "" {
				t.Errorf("%s %s:\nCoreDNS says\n%s\nWherry says\n%s", words[0], kind, want, got)
			}
		}
	}
	for key := range differences {
		if !used[key] {
			t.Errorf("%s: they agree, and should not", key)
		}
	}
	if asked < 200 {
		t.Errorf("%d questions only", asked)
	}
	t.Logf("%d questions, %d kinds of differences", asked, len(differences))
}

func question(name, kind string) dns.Question {
	if name == "." {
		name = "cluster.local."
	} else if !strings.HasSuffix(name, ".") {
		name += ".cluster.local."
	}
	return dns.Question{Name: name, Qtype: dns.StringToType[kind], Qclass: dns.ClassINET}
}

// await waits until both know of what was made last.
func await(t *testing.T, name string, at ...string) {
	t.Helper()
	for _, a := range at {
		for end := time.Now().Add(time.Minute); ; {
			if m := ask(t, a, question(name, "A")); len(m.Answer) > 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s does not know %s", a, name)
			}
		}
	}
}

func ask(t *testing.T, at string, q dns.Question) *dns.Msg {
	t.Helper()
	m := &dns.Msg{MsgHdr: dns.MsgHdr{Id: dns.Id(), RecursionDesired: true}, Question: []dns.Question{q}}
	m.SetEdns0(4096, false)
	client := dns.Client{Timeout: 30 * time.Second, UDPSize: 4096}
	answer, _, err := client.Exchange(m, at)
	if err != nil {
		t.Fatalf("%s asked for %s: %v", at, q.String(), err)
	}
	return answer
}

// tell is what a reply says, in a fixed order: what came of it, the answers, and whose zone says no. How long it may be
// kept, and what further addresses come along, are each resolver's own.
func tell(m *dns.Msg) string {
	out := []string{}
	for _, rr := range m.Answer {
		rr = dns.Copy(rr)
		rr.Header().Ttl, rr.Header().Name = 0, strings.ToLower(rr.Header().Name)
		if soa, ok := rr.(*dns.SOA); ok {
			rr = &dns.SOA{Hdr: soa.Hdr}
		}
		out = append(out, "  "+strings.ReplaceAll(rr.String(), "\t", " "))
	}
	slices.Sort(out)
	for _, rr := range m.Ns {
		if rr.Header().Rrtype == dns.TypeSOA {
			out = append(out, "  zone "+rr.Header().Name)
		}
	}
	return strings.Join(append([]string{fmt.Sprintf("  %s authoritative=%t", dns.RcodeToString[m.Rcode], m.Authoritative)}, out...), "\n")
}
