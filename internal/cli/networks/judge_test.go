// SPDX-License-Identifier: Apache-2.0

package networks

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func onePod(namespace, name, ip string, labels map[string]string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "sql",
			ContainerPort: 5432}}}}},
		Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: ip}}}}
}

// TestJudge: WL-19, the command says which policies isolate the ends of a connection and which rule lets it pass.
func TestJudge(t *testing.T) {
	db := networkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromString("sql"))}},
				From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}}}}}
	host := onePod("shop", "host", "192.0.2.1", nil)
	host.Spec.HostNetwork = true
	names := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.10"}}
	out := networkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "locked", Name: "out"},
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress: []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{},
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "kube-dns"}}}}}}}}
	f := found{policies: []networkPolicy{db, out}, names: names, namespaces: []corev1.Namespace{
		{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}}, pods: []corev1.Pod{
		onePod("shop", "db", "10.0.0.1", map[string]string{"app": "db"}),
		onePod("shop", "web", "10.0.0.2", map[string]string{"app": "web"}), host,
		onePod("locked", "a", "10.0.0.3", nil), onePod("six", "s", "fd00::1", nil)}}
	for _, c := range []struct{ from, to, want string }{
		{"web", "db:sql",
			"allowed: web → db TCP 5432\n  egress: no policy isolates shop/web\n  ingress: shop/db is isolated by db; let pass by db spec.ingress[0]\n"},
		{"web", "shop/db:5433",
			"dropped: web → shop/db TCP 5433\n  egress: no policy isolates shop/web\n  ingress: shop/db is isolated by db, and no rule of those lets it pass\n"},
		{"192.0.2.9", "db:5432",
			"dropped: 192.0.2.9 → db TCP 5432\n  egress: 192.0.2.9 is not a pod that policies select\n"},
		{"db", "db:1/udp", "a pod always reaches itself"},
		{"locked/a", "10.96.0.10:53/udp", "allowed"},
		{"locked/a", "10.96.0.10:54/udp", "allowed"}, // the rule names no port; nobody listens there
		{"locked/a", "192.0.2.9:53/udp", "dropped"},
		{"web", "db:nope", `"nope" is neither`},
		{"web", "db", "has no port"},
		{"web", "db:1/icmp", "not a protocol with ports"},
		{"nobody", "db:1", "there is no pod shop/nobody"},
		{"host", "db:1", "on its node's network"},
		{"six/s", "db:1", "no addresses of the same family"},
	} {
		q, err := parse(c.from, c.to)
		var a Answer
		if err == nil {
			a, err = judge(q, f, "shop")
		}
		got := a.text()
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s → %s: %s; want %s", c.from, c.to, got, c.want)
		}
	}
}

// TestJudgeService: WL-19, a service is judged by each endpoint behind it, at the port that it has there; what is no
// way to one is said.
func TestJudgeService(t *testing.T) {
	db := networkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromInt32(5432))}}}}}}
	service := func(namespace, name, ip string, ports ...corev1.ServicePort) corev1.Service {
		return corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: corev1.ServiceSpec{ClusterIP: ip, ClusterIPs: []string{ip}, Ports: ports}}
	}
	sql := corev1.ServicePort{Name: "sql", Port: 15432, Protocol: corev1.ProtocolTCP}
	admin := corev1.ServicePort{Name: "admin", Port: 80, Protocol: corev1.ProtocolTCP}
	elsewhere := service("shop", "elsewhere", "")
	elsewhere.Spec.Type, elsewhere.Spec.ExternalName = corev1.ServiceTypeExternalName, "db.example.com"
	names := service("kube-system", "kube-dns", "10.96.0.10",
		corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP})
	pod := func(name string) *corev1.ObjectReference {
		return &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: name}
	}
	slice := discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{
		discoveryv1.LabelServiceName: "db"}}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("sql"), Port: ptr.To[int32](5432)},
			{Name: ptr.To("admin"), Port: ptr.To[int32](8080)}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.4"}, TargetRef: pod("db-1")},
			{Addresses: []string{"10.0.0.1"}, TargetRef: pod("db-0")}, {Addresses: []string{"192.0.2.5"}}}}
	headless := service("shop", "heads", corev1.ClusterIPNone, sql)
	direct, later := *slice.DeepCopy(), *slice.DeepCopy()
	direct.Labels[discoveryv1.LabelServiceName], direct.Endpoints = "heads", direct.Endpoints[1:2]
	later.Labels[discoveryv1.LabelServiceName] = "later"
	for i := range later.Endpoints {
		later.Endpoints[i].Conditions.Ready = ptr.To(false)
	}
	ending := *later.DeepCopy()
	ending.Labels[discoveryv1.LabelServiceName] = "ending"
	ending.Endpoints[1].Conditions.Serving, ending.Endpoints[1].Conditions.Terminating = ptr.To(true), ptr.To(true)
	f := found{policies: []networkPolicy{db}, names: &names, pods: []corev1.Pod{
		onePod("shop", "db-0", "10.0.0.1", map[string]string{"app": "db"}),
		onePod("shop", "db-1", "10.0.0.4", map[string]string{"app": "db"}), onePod("shop", "web", "10.0.0.2", nil)},
		services: []corev1.Service{service("shop", "db", "10.96.0.7", sql, admin),
			service("shop", "empty", "10.96.0.8", sql), elsewhere, names,
			headless, service("shop", "later", "10.96.0.9", sql), service("shop", "ending", "10.96.0.11", sql)},
		slices: []discoveryv1.EndpointSlice{slice, direct, later, ending}}
	three := "allowed: web → 192.0.2.5 TCP 5432, by service shop/db allowed: web → shop/db-0 TCP 5432, by service shop/db " +
		"allowed: web → shop/db-1 TCP 5432, by service shop/db"
	for _, c := range []struct{ from, to, want string }{
		{"web", "svc/db:15432", three},
		{"pod/web", "service/shop/db:sql", three},
		{"web", "10.96.0.7:15432", three},
		{"web", "svc/db:admin",
			"allowed: web → 192.0.2.5 TCP 8080, by service shop/db dropped: web → shop/db-0 TCP 8080, by service shop/db " +
				"dropped: web → shop/db-1 TCP 8080, by service shop/db"},
		{"web", "svc/db:5432", "service shop/db has no port 5432/tcp; it has sql 15432/tcp, admin 80/tcp"},
		{"web", "svc/empty:15432",
			"service shop/empty has no endpoints at port 15432: connections to it are refused, whatever policies say"},
		{"web", "svc/db", "which port of service shop/db? it has sql 15432/tcp, admin 80/tcp"},
		{"web", "svc/heads", "dropped: web → shop/db-0 TCP 15432, by service shop/heads"},
		{"web", "svc/later", "service shop/later has 3 endpoints and none is ready: connections to it are refused"},
		{"web", "svc/ending", "allowed: web → shop/db-0 TCP 5432, by service shop/ending"},
		{"web", "svc/kube-system/kube-dns", "allowed: web → 10.96.0.10 TCP 53"},
		{"web", "svc/elsewhere:1", "service shop/elsewhere is another name of db.example.com"},
		{"web", "svc/nope:1", "there is no service shop/nope"},
		{"svc/db", "web:1", "a service sends nothing"},
		{"web", "svc/kube-system/kube-dns:53/udp", "allowed: web → 10.96.0.10 UDP 53"},
		{"web", "10.96.0.10:53/udp", "allowed: web → 10.96.0.10 UDP 53"},
		{"web", "pod/db-0:8080", "dropped: web → db-0 TCP 8080"},
	} {
		q, err := parse(c.from, c.to)
		var all []Answer
		if err == nil {
			all, err = judgeAll(q, f, "shop")
		}
		var lines []string
		for _, a := range all {
			line, _, _ := strings.Cut(a.text(), "\n")
			lines = append(lines, line)
		}
		got := strings.Join(lines, " ")
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s → %s:\n%s; want\n%s", c.from, c.to, got, c.want)
		}
	}
}
