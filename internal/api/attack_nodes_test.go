// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// knocker sends requests as they are written: net/http would clean their paths. It returns the answer's code.
func knocker(t *testing.T, config *rest.Config) func(method, uri string, header map[string]string) int {
	t.Helper()
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: tlsConfig}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return func(method, uri string, header map[string]string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, config.Host, nil)
		if err != nil {
			t.Fatal(err)
		}
		path, query, _ := strings.Cut(uri, "?")
		req.URL.Opaque, req.URL.RawQuery = "//"+req.URL.Host+path, query
		for name, value := range header {
			req.Header.Set(name, value)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
}

// mayReadNodes gives somebody verbs on nodes/proxy.
func mayReadNodes(t *testing.T, who, verbs string) *rest.Config {
	t.Helper()
	roles := client(t).RbacV1()
	if _, err := roles.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: who},
		Rules: rulesOf(verbs + " nodes/proxy")}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := roles.ClusterRoleBindings().Create(t.Context(),
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: who}, Subjects: userSubject(who),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: who}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return person(t, shared.srv, who)
}

// waysToANode are spellings of paths that could come to run something on a node: N is the node, P its port.
func waysToANode() []string {
	var all []string
	for _, first := range []string{"exec/ns/p/main", "attach/ns/p/main", "run/ns/p/main", "portForward/ns/p",
		"imageExec/ns/p", "EXEC/ns/p/main", "eXec/ns/p/main", "portforward/ns/p", "imageexec/ns/p", "/exec/ns/p/main",
		"//exec/ns/p/main", "./exec/ns/p/main", "../proxy/exec/ns/p/main", "pods/../exec/ns/p/main",
		"x/./../exec/ns/p/main", "%65xec/ns/p/main", "%2565xec/ns/p/main", "exec%2Fns%2Fp%2Fmain", "%2Fexec/ns/p/main",
		"%2e/exec/ns/p/main", "pods/%2e%2e/exec/ns/p/main", "pods%2F..%2Fexec/ns/p/main", "exec;x=1/ns/p/main",
		"healthz/..;/exec/ns/p/main", "exec%00/ns/p/main", "%00exec/ns/p/main", "%20exec/ns/p/main",
		"%5Cexec/ns/p/main", "exec%3F/ns/p/main", "exec%23/ns/p/main", "..%2Fproxy%2Fexec/ns/p/main",
		"%ef%bd%85xec/ns/p/main", "attach/ns/p/uid/main/run"} {
		all = append(all, "/api/v1/nodes/N/proxy/"+first)
	}
	return append(all,
		"/api/v1/nodes/N:P/proxy/exec/ns/p/main", "/api/v1/nodes/https:N:P/proxy/exec/ns/p/main",
		"/api/v1/nodes/http:N:P/proxy/exec/ns/p/main", "/api/v1/nodes/N:/proxy/exec/ns/p/main",
		"/api/v1/nodes/https:N:/proxy/exec/ns/p/main", "/api/v1/proxy/nodes/N/exec/ns/p/main",
		"/api/v1/proxy/nodes/N:P/exec/ns/p/main", "/api/v1/watch/nodes/N/proxy/exec/ns/p/main",
		"/api/v1/nodes/N/proxy?path=/exec/ns/p/main", "/api/v1/nodes/N/proxy/?path=/exec/ns/p/main",
		"/api/v1/nodes/N/proxy/pods?path=/exec/ns/p/main", "/api/v1/nodes/N/PROXY/exec/ns/p/main",
		"/api/v1/nodes/N/%70roxy/exec/ns/p/main", "/api/v1//nodes/N/proxy/exec/ns/p/main",
		"//api/v1/nodes/N/proxy/exec/ns/p/main", "/api/v1/namespaces/default/nodes/N/proxy/exec/ns/p/main",
		"/api/v1/nodes/x/../N/proxy/exec/ns/p/main", "/api/v1/nodes/N/proxy/proxy/../exec/ns/p/main")
}

// TestAttackNodesProxy: who may read a node's API does not run anything through it, however the path is spelled and by
// whatever port of the node it goes: nothing of the kind reaches the node. Who may, does. (ATTACK A12; EC-20, RS-11)
func TestAttackNodesProxy(t *testing.T) {
	n := newDebugNode(t)
	node := strings.NewReplacer("N", n.name, "P", strconv.Itoa(n.server.Listener.Addr().(*net.TCPAddr).Port))
	mon := knocker(t, mayReadNodes(t, "attack-mon", "get"))
	if code := mon(get, node.Replace("/api/v1/nodes/N/proxy/pods"), nil); len(n.heard()) != 1 {
		t.Fatalf("the node's pods: %d; does it get there? %v", code, n.heard())
	}
	refused := []int{http.StatusForbidden, http.StatusNotFound, http.StatusBadRequest, http.StatusMovedPermanently,
		http.StatusTemporaryRedirect, http.StatusServiceUnavailable}
	for _, way := range waysToANode() {
		for protocol, header := range map[string]map[string]string{"WebSocket": upgrade(), "SPDY": spdy(),
			"plain": nil} {
			uri := node.Replace(way)
			mark, _, _ := strings.Cut(uri, "?")
			uri = mark + "?" + strings.TrimPrefix(strings.TrimPrefix(uri, mark)+"&command=id&stdout=1", "?")
			if code := mon(get, uri, header); !slices.Contains(refused, code) {
				t.Errorf("%s by %s: %d", way, protocol, code)
			}
		}
	}
	for _, uri := range n.heard() {
		u, err := url.ParseRequestURI(uri)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(strings.TrimLeft(path.Clean("/"+u.Path), "/"), "/")
		if slices.Contains([]string{"exec", "attach", "run", "portforward", "imageexec"}, strings.ToLower(first)) {
			t.Errorf("the node was asked for %s", uri)
		}
	}
	runner := knocker(t, mayReadNodes(t, "attack-runner", "create"))
	runner(get, node.Replace("/api/v1/nodes/N/proxy/exec/ns/p/main?command=id&stdout=1"), upgrade())
	if !slices.ContainsFunc(n.heard(), func(uri string) bool { return strings.HasPrefix(uri, "/exec/ns/p/main") }) {
		t.Error("who may run commands through the node's API does not get there")
	}
}

// heard are the requests that came to the node.
func (n *debugNode) heard() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.served)
}

// TestAttackProxies: the proxy of services and pods is no way to the machine's own programs: by endpoints of whatever
// form, by a service that names another, by a pod's forged address; and who edits a namespace writes no endpoints.
// (ATTACK A14; RS-11)
func TestAttackProxies(t *testing.T) {
	var reached atomic.Int32
	own := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer own.Close()
	port := int32(own.Listener.Addr().(*net.TCPAddr).Port)
	c := client(t)
	ns := namespace(t, c)
	bindTo(t, c, ns, "attack-ed", rbacv1.RoleRef{Kind: "ClusterRole", Name: "edit"})
	ed := clientOf(t, person(t, shared.srv, "attack-ed"))
	ask := knocker(t, adminConfig(t))
	tried := 0
	var asked sync.WaitGroup // the kernel takes seconds until it says that some addresses cannot be reached
	get := func(what, uri string) {
		tried++
		for _, header := range []map[string]string{nil, upgrade()} {
			asked.Go(func() {
				if code := ask(http.MethodGet, "/api/v1/namespaces/"+ns+uri, header); code < 400 ||
					code == http.StatusForbidden {
					t.Errorf("%s: %d", what, code)
				}
			})
		}
	}
	for i, to := range []struct {
		kind    discoveryv1.AddressType
		address string
	}{
		{discoveryv1.AddressTypeIPv4, "127.0.0.1"}, {discoveryv1.AddressTypeIPv4, "127.1.2.3"},
		{discoveryv1.AddressTypeIPv4, "0.0.0.0"}, {discoveryv1.AddressTypeIPv4, "169.254.169.254"},
		{discoveryv1.AddressTypeIPv4, "127.1"}, {discoveryv1.AddressTypeIPv4, "0x7f000001"},
		{discoveryv1.AddressTypeIPv4, "2130706433"}, {discoveryv1.AddressTypeIPv4, "127.000.000.001"},
		{discoveryv1.AddressTypeIPv6, "::1"}, {discoveryv1.AddressTypeIPv6, "::ffff:127.0.0.1"},
		{discoveryv1.AddressTypeIPv6, "::127.0.0.1"}, {discoveryv1.AddressTypeIPv6, "::"},
		{discoveryv1.AddressTypeIPv6, "fe80::1"}, {discoveryv1.AddressTypeIPv6, "::ffff:169.254.169.254"},
		{discoveryv1.AddressTypeFQDN, "localhost"},
		{discoveryv1.AddressTypeFQDN, "localhost.localdomain"}, {discoveryv1.AddressTypeIPv4, "224.0.0.1"},
	} {
		name := fmt.Sprintf("s%d", i)
		family := corev1.IPv4Protocol
		if to.kind == discoveryv1.AddressTypeIPv6 {
			family = corev1.IPv6Protocol
		}
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, IPFamilies: []corev1.IPFamily{family},
				Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
		if _, err := c.CoreV1().Services(ns).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			s.Spec.IPFamilies = nil // this server may have one family only: the slice is what counts
			if _, err = c.CoreV1().Services(ns).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{discoveryv1.LabelServiceName: name}}, AddressType: to.kind,
			Ports:     []discoveryv1.EndpointPort{{Name: new("http"), Port: &port, Protocol: new(corev1.ProtocolTCP)}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{to.address}}}}
		_, err := ed.DiscoveryV1().EndpointSlices(ns).Create(t.Context(), slice, metav1.CreateOptions{})
		forbidden(t, to.address+" by who edits", err)
		if _, err := c.DiscoveryV1().EndpointSlices(ns).Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
			t.Logf("%s %s: %v", to.kind, to.address, err) // nor by anybody
		}
		get("endpoint "+to.address, "/services/"+name+"/proxy/")
		get("endpoint "+to.address+" by its port", "/services/http:"+name+":http/proxy/x")
	}
	old := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "s0"}} //nolint:staticcheck // clients still write them
	_, err := ed.CoreV1().Endpoints(ns).Create(t.Context(), old, metav1.CreateOptions{})
	if err == nil {
		t.Error("who edits writes endpoints of the old form")
	}
	away := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "away"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost",
			Ports: []corev1.ServicePort{{Port: port}}}}
	if _, err := c.CoreV1().Services(ns).Create(t.Context(), away, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	get("a service of another name", fmt.Sprintf("/services/away:%d/proxy/", port))
	for i, ip := range []string{"127.0.0.1", "::1", "169.254.169.254", "0.0.0.0", "::ffff:127.0.0.1"} {
		p := createPod(t, c, ns, pod(fmt.Sprintf("p%d", i)))
		p.Status.PodIP, p.Status.PodIPs, p.Status.Phase = ip, []corev1.PodIP{{IP: ip}}, corev1.PodRunning
		if _, err := ed.CoreV1().Pods(ns).UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err == nil {
			t.Errorf("who edits writes a pod's address: %s", ip)
		}
		if _, err := c.CoreV1().Pods(ns).UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
			t.Logf("pod of %s: %v", ip, err)
		}
		get("a pod of "+ip, fmt.Sprintf("/pods/%s:%d/proxy/", p.Name, port))
	}
	asked.Wait()
	if n := reached.Load(); n > 0 || tried < 30 {
		t.Errorf("the machine's own program was reached %d times, by %d attempts", n, tried)
	}
}
