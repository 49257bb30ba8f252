// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

func parsed(t testing.TB, text string) *networkingv1.NetworkPolicy {
	t.Helper()
	p := &networkingv1.NetworkPolicy{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	p.Namespace = "default"
	if p.Name == "" {
		p.Name = "p"
	}
	return p
}

func simple(namespace, name, ip string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name), Labels: labels},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: ip}}}}
}

// cluster is that of the examples in Kubernetes' documentation.
func cluster() *World {
	w := New()
	w.SetNamespace("default", map[string]string{"kubernetes.io/metadata.name": "default"})
	w.SetNamespace("myproject", map[string]string{"project": "myproject"})
	w.SetNamespace("kube-system", map[string]string{"kubernetes.io/metadata.name": "kube-system"})
	w.SetPod(simple("default", "db", "172.17.9.1", map[string]string{"role": "db"}))
	w.SetPod(simple("default", "frontend", "172.17.9.2", map[string]string{"role": "frontend"}))
	w.SetPod(simple("default", "other", "172.17.9.3", nil))
	w.SetPod(simple("myproject", "mine", "172.17.9.4", map[string]string{"role": "client"}))
	w.SetPod(simple("elsewhere", "theirs", "172.17.9.5", map[string]string{"role": "client"}))
	return w
}

// TestDocumented: WL-19, the examples of Kubernetes' documentation let pass what it says that they do, and say why.
func TestDocumented(t *testing.T) {
	const db, frontend, other, mine, theirs = "172.17.9.1", "172.17.9.2", "172.17.9.3", "172.17.9.4", "172.17.9.5"
	const example = `
spec:
  podSelector: {matchLabels: {role: db}}
  policyTypes: [Ingress, Egress]
  ingress:
  - from:
    - ipBlock: {cidr: 172.17.0.0/16, except: [172.17.1.0/24, 172.17.9.0/24]}
    - namespaceSelector: {matchLabels: {project: myproject}}
    - podSelector: {matchLabels: {role: frontend}}
    ports: [{protocol: TCP, port: 6379}]
  egress:
  - to: [{ipBlock: {cidr: 10.0.0.0/24}}]
    ports: [{protocol: TCP, port: 5978}]`
	for name, c := range map[string]struct {
		policy, from, to string
		port             uint16
		want             bool
		by               string
	}{
		"from a pod by label":             {example, frontend, db, 6379, true, "p spec.ingress[0]"},
		"from a namespace by label":       {example, mine, db, 6379, true, "p spec.ingress[0]"},
		"from a network":                  {example, "172.17.2.1", db, 6379, true, "p spec.ingress[0]"},
		"from an exception":               {example, "172.17.1.1", db, 6379, false, ""},
		"another port":                    {example, frontend, db, 6380, false, ""},
		"another pod":                     {example, other, db, 6379, false, ""},
		"another namespace":               {example, theirs, db, 6379, false, ""},
		"to a network":                    {example, db, "10.0.0.7", 5978, true, "p spec.egress[0]"},
		"to another":                      {example, db, "10.0.1.7", 5978, false, ""},
		"not selected":                    {example, theirs, frontend, 1, true, ""},
		"either of two peers":             {orPeers, frontend, db, 1, false, ""},
		"either: all of the namespace":    {orPeers, mine, db, 1, true, "p spec.ingress[0]"},
		"both selectors of one peer":      {andPeers, mine, db, 1, true, "p spec.ingress[0]"},
		"both: only one of them":          {andPeers, theirs, db, 1, false, ""},
		"deny all ingress":                {"spec: {podSelector: {}, policyTypes: [Ingress]}", other, db, 1, false, ""},
		"deny all ingress: egress":        {"spec: {podSelector: {}, policyTypes: [Ingress]}", db, theirs, 1, true, ""},
		"allow all ingress":               {"spec: {podSelector: {}, ingress: [{}], policyTypes: [Ingress]}", other, db, 1, true, "p spec.ingress[0]"},
		"deny all egress":                 {"spec: {podSelector: {}, policyTypes: [Egress]}", db, theirs, 1, false, ""},
		"deny all egress: ingress":        {"spec: {podSelector: {}, policyTypes: [Egress]}", theirs, db, 1, true, ""},
		"allow all egress":                {"spec: {podSelector: {}, egress: [{}], policyTypes: [Egress]}", db, theirs, 1, true, "p spec.egress[0]"},
		"deny all":                        {"spec: {podSelector: {}, policyTypes: [Ingress, Egress]}", db, other, 1, false, ""},
		"egress rules without types":      {"spec: {podSelector: {}, egress: [{to: [{ipBlock: {cidr: 1.1.1.1/32}}]}]}", db, theirs, 1, false, ""},
		"no types, no rules: egress":      {"spec: {podSelector: {}}", db, theirs, 1, true, ""},
		"a range":                         {ranged, db, "10.0.0.1", 32768, true, "p spec.egress[0]"},
		"a range: beyond":                 {ranged, db, "10.0.0.1", 32769, false, ""},
		"in and except are another's":     {overlap, db, "10.0.0.5", 1, true, "p spec.egress[1]"},
		"a pod reaches itself":            {"spec: {podSelector: {}, policyTypes: [Ingress, Egress]}", db, db, 1, true, ""},
		"namespaces by name, as labelled": {byName, other, db, 1, true, "p spec.ingress[0]"},
	} {
		w := cluster()
		if err := w.SetPolicy(parsed(t, c.policy)); err != nil {
			t.Fatal(err)
		}
		conn := Connection{netip.MustParseAddr(c.from), netip.MustParseAddr(c.to), TCP, c.port}
		got := w.Judge(conn)
		var by []string
		for _, o := range []*Opinion{got.Out, got.In} {
			if o != nil {
				by = append(by, o.By...)
			}
		}
		if got.Allowed != c.want || strings.Join(by, ",") != c.by {
			t.Errorf("%s: %+v by %q, want %v by %q", name, got, by, c.want, c.by)
		}
		if kernel := w.Tables().kernel(conn); kernel != c.want {
			t.Errorf("%s: the tables say %v", name, kernel)
		}
	}
}

const (
	orPeers = `
spec:
  podSelector: {}
  ingress: [{from: [{namespaceSelector: {matchLabels: {project: myproject}}}, {podSelector: {matchLabels: {role: client}}}]}]`
	andPeers = `
spec:
  podSelector: {}
  ingress: [{from: [{namespaceSelector: {matchLabels: {project: myproject}}, podSelector: {matchLabels: {role: client}}}]}]`
	ranged = `
spec:
  podSelector: {matchLabels: {role: db}}
  policyTypes: [Egress]
  egress: [{to: [{ipBlock: {cidr: 10.0.0.0/24}}], ports: [{protocol: TCP, port: 32000, endPort: 32768}]}]`
	overlap = `
spec:
  podSelector: {}
  policyTypes: [Egress]
  egress: [{to: [{ipBlock: {cidr: 10.0.0.0/24, except: [10.0.0.5/32]}}]}, {to: [{ipBlock: {cidr: 10.0.0.5/32}}]}]`
	byName = `
spec:
  podSelector: {}
  ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [default]}]}}]}]`
)

// TestNames: WL-19, the name server is reached by the rule that opens a cluster's DNS pods, by its service's address,
// and by rules for everything; it listens elsewhere than it is asked.
func TestNames(t *testing.T) {
	asked, listen := netip.MustParseAddrPort("10.96.0.10:53"), netip.MustParseAddrPort("10.5.0.1:40001")
	const head = "spec: {podSelector: {}, policyTypes: [Egress], egress: ["
	for rule, want := range map[string]bool{
		``:   false,
		`{}`: true,
		`{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}, podSelector: {matchLabels: {k8s-app: kube-dns}}}], ports: [{port: 53, protocol: UDP}]}`: true,
		`{to: [{namespaceSelector: {}, podSelector: {matchLabels: {k8s-app: kube-dns}}}], ports: [{port: dns, protocol: UDP}]}`:                                                       true,
		`{to: [{podSelector: {matchLabels: {k8s-app: kube-dns}}}]}`:                                                                                                                   false,
		`{to: [{namespaceSelector: {}}], ports: [{port: 53}]}`:                                                                                                                        false, // TCP
		`{ports: [{port: 53, protocol: UDP}]}`:                                                                                                                                        true,
		`{to: [{ipBlock: {cidr: 10.96.0.10/32}}]}`:                                                                                                                                    true,
		`{to: [{ipBlock: {cidr: 192.0.2.0/24}}], ports: [{port: 53}]}`:                                                                                                                false,
	} {
		w := cluster()
		if err := w.SetPolicy(parsed(t, head+rule+"]}")); err != nil {
			t.Fatal(err)
		}
		w.SetNames(&Names{Asked: asked, Listen: listen}) // after the policy: it is decided anew
		from := netip.MustParseAddr("172.17.9.3")
		if got := w.Judge(Connection{from, asked.Addr(), UDP, asked.Port()}); got.Allowed != want {
			t.Errorf("%s: %+v, want %v", rule, got.Out, want)
		}
		if got := w.Tables().kernel(Connection{from, listen.Addr(), UDP, listen.Port()}); got != want {
			t.Errorf("%s: the tables say %v, want %v", rule, got, want)
		}
		if rule != `{}` && !strings.Contains(rule, "{}}") {
			if w.Tables().kernel(Connection{from, listen.Addr(), UDP, 40002}) && want && strings.Contains(rule, "kube-dns") {
				t.Errorf("%s: opens more than the name server", rule)
			}
		}
		w.SetNames(nil)
		if rule != `{}` && w.Tables().kernel(Connection{from, listen.Addr(), UDP, listen.Port()}) {
			t.Errorf("%s: what is nobody's any more is open", rule)
		}
	}
}

// TestOneAddress: WL-19, of two pods with one address, which may be seen while one goes, it is the newer one's; the
// older has it again if that goes first.
func TestOneAddress(t *testing.T) {
	w := cluster()
	if err := w.SetPolicy(parsed(t, "spec: {podSelector: {matchLabels: {role: db}}}")); err != nil {
		t.Fatal(err)
	}
	conn := Connection{netip.MustParseAddr("172.17.9.2"), netip.MustParseAddr("172.17.9.1"), TCP, 1}
	isOpen := func(want bool) {
		t.Helper()
		if got := w.Tables().kernel(conn); got != want {
			t.Errorf("open: %v, want %v", got, want)
		}
	}
	isOpen(false)
	newer := simple("default", "newer", "172.17.9.1", nil)
	newer.CreationTimestamp = metav1.NewTime(time.Unix(1, 0))
	w.SetPod(newer)
	isOpen(true)
	w.DropPod("default", "newer")
	isOpen(false)
	ended := simple("default", "db", "172.17.9.1", map[string]string{"role": "db"})
	ended.Status.Phase = corev1.PodFailed
	w.SetPod(ended)
	if _, known := w.Tables().Sets[SetIn][Elem{Addr: conn.To}]; known {
		t.Error("the address of a pod that has ended is known")
	}
}

// TestNotUnderstood: WL-19, a rule that is not understood lets nothing pass, and the rest of its policy holds, by the
// names that its rules have there.
func TestNotUnderstood(t *testing.T) {
	for rule, field := range map[string]string{
		"from: [{ipBlock: {cidr: nonsense}}]":                 "from[0].ipBlock.cidr: ",
		"from: [{podSelector: {}}, {}]":                       "from[1].podSelector: there is none",
		"ports: [{port: 79}, {port: 65616}]":                  "ports[1].port: 65616 is not", // 80, if cut off
		"ports: [{port: 0}]":                                  "ports[0].port: 0 is not",
		"ports: [{port: 70, endPort: 65599}]":                 "ports[0].endPort: 65599 is not",
		"ports: [{port: 70, endPort: 69}]":                    "ports[0].endPort: 69 is not",
		"ports: [{port: ''}]":                                 "ports[0].port: a name",
		"ports: [{protocol: QUIC}]":                           `ports[0].protocol: "QUIC" is none of`,
		"from: [{namespaceSelector: {matchLabels: {'': a}}}]": "from[0].namespaceSelector: ",
	} {
		w := cluster()
		err := w.SetPolicy(parsed(t, "spec: {podSelector: {}, ingress: [{"+rule+"}, {ports: [{port: 81}]}]}"))
		if err == nil || !strings.Contains(err.Error(), "NetworkPolicy default/p: spec.ingress[0]."+field) {
			t.Errorf("%s: the error is %v", rule, err)
		}
		for port, by := range map[uint16]string{80: "", 81: "p spec.ingress[1]"} {
			c := Connection{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("172.17.9.1"), TCP, port}
			got, kernel := w.Judge(c), w.Tables().kernel(c)
			if strings.Join(got.In.By, ",") != by || got.Allowed != (by != "") || kernel != got.Allowed {
				t.Errorf("%s: port %d: %+v, and the tables say %v; want it let pass by %q", rule, port, got.In, kernel, by)
			}
		}
	}
}

// TestSelectorNotUnderstood: WL-19, a policy of which it is not understood whom it is for lets nothing pass to any pod
// of its namespace, in the directions that it is about, and says so.
func TestSelectorNotUnderstood(t *testing.T) {
	w := cluster()
	err := w.SetPolicy(parsed(t, `
spec:
  podSelector: {matchExpressions: [{key: role, operator: Later}]}
  ingress: [{}]`))
	if err == nil || !strings.Contains(err.Error(), "spec.podSelector") {
		t.Errorf("the error is %v", err)
	}
	for to, want := range map[string]bool{"172.17.9.1": false, "172.17.9.3": false, "172.17.9.4": true} {
		c := Connection{netip.MustParseAddr("172.17.9.2"), netip.MustParseAddr(to), TCP, 80}
		if got, kernel := w.Judge(c), w.Tables().kernel(c); got.Allowed != want || kernel != want {
			t.Errorf("to %s: %+v, and the tables say %v, want %v", to, got, kernel, want)
		}
	}
}

// TestUnknownNamespace: WL-19, a pod whose namespace is not known yet is none of those whose namespace lacks a label,
// and is one once it is known, also without any labels.
func TestUnknownNamespace(t *testing.T) {
	w := cluster()
	if err := w.SetPolicy(parsed(t, `
spec:
  podSelector: {}
  ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: team, operator: DoesNotExist}]}}]}]`)); err != nil {
		t.Fatal(err)
	}
	c := Connection{netip.MustParseAddr("172.17.9.5"), netip.MustParseAddr("172.17.9.1"), TCP, 80} // from elsewhere
	check := func(when string, want bool) {
		t.Helper()
		if got, kernel := w.Judge(c), w.Tables().kernel(c); got.Allowed != want || kernel != want {
			t.Errorf("%s: %+v, and the tables say %v, want %v", when, got.In, kernel, want)
		}
	}
	check("not known", false)
	w.SetNamespace("elsewhere", nil)
	check("without labels", true)
	w.SetNamespace("elsewhere", map[string]string{"team": "a"})
	check("with the label", false)
	w.SetNamespace("elsewhere", nil)
	w.DropNamespace("elsewhere")
	check("gone", false)
}

// TestOtherNodes: WL-19, a pod of another node takes no address of this one's network: neither from the pod that has it
// here, nor as a peer. With an address of its own it is a peer, and its own policies are enforced where it runs.
func TestOtherNodes(t *testing.T) {
	w := NewOn("here", []netip.Prefix{netip.MustParsePrefix("172.17.0.0/16")})
	w.SetNamespace("default", nil)
	add := func(name, node, ip string, labels map[string]string, created int64) {
		p := simple("default", name, ip, labels)
		p.Spec.NodeName, p.CreationTimestamp = node, metav1.NewTime(time.Unix(created, 0))
		w.SetPod(p)
	}
	add("db", "here", "172.17.9.1", map[string]string{"role": "db"}, 1)
	add("other", "here", "172.17.9.2", nil, 1)
	add("free", "there", "172.17.9.1", nil, 2)                                // db's address
	add("frontend", "there", "172.17.9.2", map[string]string{"role": "f"}, 2) // other's
	add("far", "there", "10.9.0.1", map[string]string{"role": "f"}, 2)
	for _, text := range []string{`
metadata: {name: db}
spec:
  podSelector: {matchLabels: {role: db}}
  ingress: [{from: [{podSelector: {matchLabels: {role: f}}}]}]`, `
metadata: {name: f}
spec: {podSelector: {matchLabels: {role: f}}, policyTypes: [Ingress, Egress]}`} {
		if err := w.SetPolicy(parsed(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		from, to string
		want     bool
	}{
		"db keeps its policies":               {"192.0.2.1", "172.17.9.1", false},
		"other is not frontend":               {"172.17.9.2", "172.17.9.1", false},
		"other has none of frontend's":        {"172.17.9.1", "172.17.9.2", true},
		"a peer with an address of its own":   {"10.9.0.1", "172.17.9.1", true},
		"what it gets is judged where it is":  {"172.17.9.2", "10.9.0.1", true},
		"what it sends is judged where it is": {"10.9.0.1", "172.17.9.2", true},
	} {
		c := Connection{netip.MustParseAddr(row.from), netip.MustParseAddr(row.to), TCP, 80}
		if got, kernel := w.Judge(c), w.Tables().kernel(c); got.Allowed != row.want || kernel != row.want {
			t.Errorf("%s: %+v, and the tables say %v, want %v", name, got, kernel, row.want)
		}
	}
	if _, placed := w.Tables().Sets[SetIn][Elem{Addr: netip.MustParseAddr("10.9.0.1")}]; placed {
		t.Error("a pod of another node has policies in this one's kernel")
	}
}

// TestLongNames: WL-19, chains have names that the kernel takes, whatever the policy's is.
func TestLongNames(t *testing.T) {
	p := parsed(t, "spec: {podSelector: {}, ingress: [{}]}")
	p.Name = strings.Repeat("n", 253)
	w := cluster()
	if err := w.SetPolicy(p); err != nil {
		t.Fatal(err)
	}
	for name := range w.Tables().Chains {
		if len(name) > 220 {
			t.Errorf("%d characters: %s", len(name), name)
		}
	}
}
