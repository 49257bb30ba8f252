// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api/connect/kubelettest"
)

func TestNodeProxy(t *testing.T) {
	c := newCluster(t)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "other ", r.URL.Path) }))
	defer other.Close()
	_, port, _ := net.SplitHostPort(other.Listener.Addr().String())
	for _, tc := range []struct {
		name, path string
		code       int
		want       string
	}{
		{"the kubelet", "one/proxy/healthz", 200, "ok"},
		{"the kubelet by its port", fmt.Sprintf("one:%d/proxy/healthz", c.Nodes["one"].Status.DaemonEndpoints.KubeletEndpoint.Port), 200, "ok"},
		{"another port", "http:one:" + port + "/proxy/a/b", 200, "other /a/b"},
		{"no such node", "nobody/proxy/healthz", 503, "is not registered"},
		{"dead node", "dead/proxy/healthz", 503, "error trying to reach service: dial tcp"},
		{"nonsense", "ftp:one:1/proxy/healthz", 400, "invalid node request"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, body := fetch(t, c.URL+"/api/v1/nodes/"+tc.path)
			if code != tc.code || !strings.Contains(body, tc.want) {
				t.Errorf("%d %s", code, body)
			}
		})
	}
}

// TestNodeProxyInProcess: PL-36, who names the kubelet's port, as programs that read its figures do, reaches a kubelet of this process too,
// though it listens where nobody else reaches it.
func TestNodeProxyInProcess(t *testing.T) {
	c := newCluster(t)
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "own ", r.URL.Path) }))
	defer own.Close()
	kubelets := NewKubelets(c.Node, c.TLS())
	defer kubelets.Close()
	defer kubelets.Serve("dead", func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", own.Listener.Addr().String())
	})()
	mux := http.NewServeMux()
	mux.Handle("/api/v1/nodes/{name}/proxy/{path...}",
		kubelettest.Handler(newScheme(t), NewNodeProxy(kubelets.Locate, kubelets.Published, NewNodePortTransport())))
	api := httptest.NewServer(mux)
	defer api.Close()
	port := c.Nodes["dead"].Status.DaemonEndpoints.KubeletEndpoint.Port
	for _, name := range []string{"dead", fmt.Sprintf("dead:%d", port), fmt.Sprintf("https:dead:%d", port)} {
		if code, body := fetch(t, api.URL+"/api/v1/nodes/"+name+"/proxy/metrics/resource"); code != 200 || body != "own /metrics/resource" {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
}

func TestPodHost(t *testing.T) {
	pod := kubelettest.NewPod("p", "one", nil, "a", "b")
	pod.Status.PodIPs = []corev1.PodIP{{IP: "10.1.2.3"}}
	bare := pod.DeepCopy()
	pod.Spec.Containers[1].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}, {Name: "admin", ContainerPort: 9000}}
	six := bare.DeepCopy()
	six.Status.PodIPs[0].IP = "fd00::1"
	loop := bare.DeepCopy()
	loop.Status.PodIPs[0].IP = "127.0.0.1"
	for _, tc := range []struct {
		name string
		pod  *corev1.Pod
		port string
		want string
	}{
		{"first port", pod, "", "10.1.2.3:8080"},
		{"named port", pod, "admin", "10.1.2.3:9000"},
		{"any port", pod, "1234", "10.1.2.3:1234"},
		{"no port", bare, "", "10.1.2.3"},
		{"IPv6", six, "80", "[fd00::1]:80"},
		{"IPv6 without port", six, "", "[fd00::1]"},
		{"no such port", pod, "db", `pod p has no port named "db"`},
		{"loopback", loop, "80", "proxying to address 127.0.0.1 is not allowed"},
		{"no address", kubelettest.NewPod("p", "", nil, "a"), "", "pod p has no IP address yet"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := podHost(tc.pod, tc.port)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestPodProxyRedirect: relative links of a page need the slash.
func TestPodProxyRedirect(t *testing.T) {
	c := newCluster(t)
	c.Pods["plain"].Status.PodIPs = []corev1.PodIP{{IP: "192.0.2.1"}}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Get(c.URL + "/api/v1/namespaces/default/pods/plain/proxy")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMovedPermanently || !strings.HasSuffix(resp.Header.Get("Location"), "/pods/plain/proxy/") {
		t.Errorf("%d %s", resp.StatusCode, resp.Header)
	}
}

func TestServiceProxy(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "served ", r.URL.Path) }))
	defer backend.Close()
	port := int32(backend.Listener.Addr().(*net.TCPAddr).Port)
	services := map[string]*corev1.Service{
		"web":   {ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}},
		"empty": {ObjectMeta: metav1.ObjectMeta{Name: "empty"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
	}
	slices := map[string][]*discoveryv1.EndpointSlice{"web": {{
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: &port}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"192.0.2.9"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}},
			{Addresses: []string{"127.0.0.1"}},
		},
	}}}
	transport := NewNodePortTransport() // the backend is on loopback
	defer transport.CloseIdleConnections()
	storage := NewServiceProxy(func(_ context.Context, name string) (*corev1.Service, error) {
		if s, ok := services[name]; ok {
			return s, nil
		}
		return nil, apierrors.NewNotFound(corev1.Resource("services"), name)
	}, func(_ context.Context, name string) ([]*discoveryv1.EndpointSlice, error) { return slices[name], nil }, transport)
	mux := http.NewServeMux()
	mux.Handle("/services/{name}/proxy/{path...}", kubelettest.Handler(newScheme(t), storage))
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, tc := range []struct {
		path string
		code int
		want string
	}{
		{"web/proxy/x", 200, "served /x"},
		{"web:http/proxy/x", 200, "served /x"},
		{"web:80/proxy/", 200, "served /"},
		{"http:web:80/proxy/x", 200, "served /x"},
		{"web:81/proxy/x", 503, `no service port \"81\" found for service \"web\"`},
		{"empty/proxy/x", 503, `no endpoints available for service \"empty\"`},
		{"none/proxy/x", 404, `services \"none\" not found`},
		{"a:b:c:d/proxy/x", 400, "invalid service request"},
	} {
		t.Run(tc.path, func(t *testing.T) {
			code, body := fetch(t, server.URL+"/services/"+tc.path)
			if code != tc.code || !strings.Contains(body, tc.want) {
				t.Errorf("%d %s", code, body)
			}
		})
	}
}

// TestProxyStaysOutside proves that neither pod nor service can be made a way to this machine's own services or a cloud's
// metadata: by address, by name, mapped into IPv6, with or without an upgrade.
func TestProxyStaysOutside(t *testing.T) {
	secret := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the host's own") }))
	defer secret.Close()
	_, number, _ := net.SplitHostPort(secret.Listener.Addr().String())
	for _, address := range []string{"127.0.0.1", "127.1.2.3", "localhost", "0.0.0.0", "169.254.169.254", "224.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[fe80::1]", "[::]"} {
		for _, upgrade := range []bool{false, true} {
			transport := NewProxyTransport()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				forward(target{scheme: "http", host: address + ":" + number, path: "/"}, transport, kubelettest.Responder{W: w}, "service web").ServeHTTP(w, r)
			}))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			if upgrade {
				req.Header.Set("Connection", "Upgrade")
				req.Header.Set("Upgrade", "websocket")
			}
			resp, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(said), "proxying to address") {
				t.Errorf("%s, upgrade %t: %d %s %v", address, upgrade, resp.StatusCode, said, err)
			}
			server.Close()
			transport.CloseIdleConnections()
		}
	}
	for _, address := range []string{"10.1.2.3:80", "192.0.2.1:80", "[fd00::1]:80", "[2001:db8::1]:443"} {
		if err := onlyOutside("tcp", address, nil); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"10.1.2.3", "name:80", ""} {
		if err := onlyOutside("tcp", address, nil); err == nil {
			t.Errorf("%q is let through", address)
		}
	}
}
