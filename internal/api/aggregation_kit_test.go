// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/pki"
)

// otherServer is another API server: it serves kind Boat in a group of its own, to whoever the front proxy's
// certificate vouches for.
type otherServer struct {
	*httptest.Server
	group string
	ca    []byte

	mu    sync.Mutex
	asked []asking
	gone  chan struct{} // closed: watches end
}

// asking is what the other server was told of a request.
type asking struct {
	path, method, user string
	groups             []string
	name               string // of the certificate
	authorization      string
}

func newOtherServer(t *testing.T, group, service, ns string, front *x509.CertPool) *otherServer {
	t.Helper()
	ca, err := pki.LoadOrCreate(t.TempDir(), "other-ca")
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM, err := ca.Serving([]string{service + "." + ns + ".svc"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	o := &otherServer{group: group, ca: ca.CertPEM(), gone: make(chan struct{})}
	o.Server = httptest.NewUnstartedServer(o)
	o.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.VerifyClientCertIfGiven,
		ClientCAs: front}
	o.StartTLS()
	t.Cleanup(o.end)
	return o
}

func (o *otherServer) end() {
	o.mu.Lock()
	select {
	case <-o.gone:
	default:
		close(o.gone)
	}
	o.mu.Unlock()
	o.CloseClientConnections()
	o.Close()
}

func (o *otherServer) port() int32 {
	_, port, _ := net.SplitHostPort(o.Listener.Addr().String())
	n, _ := strconv.Atoi(port)
	return int32(n)
}

// last is the latest request for a path; "" in path when there was none.
func (o *otherServer) last(path string) asking {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := len(o.asked) - 1; i >= 0; i-- {
		if o.asked[i].path == path {
			return o.asked[i]
		}
	}
	return asking{}
}

func (o *otherServer) boat(name, version string) map[string]any {
	return map[string]any{"apiVersion": o.group + "/v1", "kind": "Boat",
		"metadata": map[string]any{"name": name, "resourceVersion": version}}
}

func (o *otherServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a := asking{path: req.URL.Path, method: req.Method, user: req.Header.Get("X-Remote-User"),
		groups: req.Header.Values("X-Remote-Group"), authorization: req.Header.Get("Authorization")}
	if len(req.TLS.PeerCertificates) > 0 {
		a.name = req.TLS.PeerCertificates[0].Subject.CommonName
	}
	o.mu.Lock()
	o.asked = append(o.asked, a)
	o.mu.Unlock()
	if a.name == "" {
		http.Error(w, "who says who asks?", http.StatusUnauthorized)
		return
	}
	root := "/apis/" + o.group + "/v1"
	switch req.URL.Path {
	case root:
		writeJSON(w, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: o.group + "/v1", APIResources: []metav1.APIResource{{Name: "boats", SingularName: "boat",
				Namespaced: true, Kind: "Boat", Verbs: metav1.Verbs{"get", "list", "watch", "delete"}}}})
	case "/openapi/v3":
		path := "apis/" + o.group + "/v1"
		writeJSON(w, map[string]any{"paths": map[string]any{path: map[string]any{
			"serverRelativeURL": "/openapi/v3/" + path + "?hash=1234"}}})
	case "/openapi/v2":
		writeJSON(w, map[string]any{"swagger": "2.0", "info": map[string]any{"title": "boats", "version": "1"},
			"paths": map[string]any{root + "/boats": map[string]any{}, "/api/v1/pods": map[string]any{}}})
	case "/openapi/v3" + root:
		writeJSON(w, map[string]any{"openapi": "3.0.0", "info": map[string]any{"title": "boats", "version": "1"},
			"paths": map[string]any{}})
	case root + "/boats", root + "/namespaces/harbour/boats":
		if req.URL.Query().Get("watch") != "" {
			o.watch(w)
			return
		}
		writeJSON(w, map[string]any{"apiVersion": o.group + "/v1", "kind": "BoatList",
			"metadata": map[string]any{"resourceVersion": "1"}, "items": []any{o.boat("dinghy", "1")}})
	case root + "/namespaces/harbour/boats/dinghy/hail":
		o.hail(w, req)
	default:
		http.NotFound(w, req)
	}
}

// watch tells of a boat, and lasts.
func (o *otherServer) watch(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	text, _ := json.Marshal(map[string]any{"type": "ADDED", "object": o.boat("punt", "2")})
	fmt.Fprintf(w, "%s\n", text)
	w.(http.Flusher).Flush()
	<-o.gone
}

// hail is a stream of another protocol: it sends back what it gets, in capitals.
func (o *otherServer) hail(w http.ResponseWriter, req *http.Request) {
	if req.Header.Get("Upgrade") != "hail" {
		http.Error(w, "hail needs an upgrade", http.StatusBadRequest)
		return
	}
	conn, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: hail\r\n\r\n")
	rw.Flush()
	line, err := rw.ReadString('\n')
	if err == nil {
		fmt.Fprint(rw, strings.ToUpper(line))
		rw.Flush()
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// registrations is the client of APIServices.
func registrations(t *testing.T, config *rest.Config) *clientset.Clientset {
	t.Helper()
	c, err := clientset.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// apiService is one that gives v1 of a group to a Service.
func apiService(o *otherServer, ns, service string) *v1.APIService {
	return &v1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1." + o.group},
		Spec: v1.APIServiceSpec{Group: o.group, Version: "v1", GroupPriorityMinimum: 500, VersionPriority: 10,
			CABundle: o.ca, Service: &v1.ServiceReference{Namespace: ns, Name: service, Port: ptr.To(o.port())}}}
}

// onThisMachine is a Service without pods that leads here.
func onThisMachine(name string, port int32) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeExternalName, ExternalName: "localhost",
		Ports: []corev1.ServicePort{{Port: port}}}}
}

// awaitAvailable waits until an APIService's condition is as told, with a reason if there is one.
func awaitAvailable(t *testing.T, c *clientset.Clientset, name string, status v1.ConditionStatus, reason string) {
	t.Helper()
	w, err := c.ApiregistrationV1().APIServices().Watch(t.Context(),
		metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	patience := time.After(time.Minute)
	var seen []v1.APIServiceCondition
	for {
		select {
		case e := <-w.ResultChan():
			s, ok := e.Object.(*v1.APIService)
			if !ok {
				t.Fatalf("the watch of %s said %v", name, e)
			}
			seen = s.Status.Conditions
			for _, cond := range seen {
				if cond.Type == v1.Available && cond.Status == status && (reason == "" || cond.Reason == reason) {
					return
				}
			}
		case <-patience:
			t.Fatalf("APIService %s is not %s (%s): %v", name, status, reason, seen)
		}
	}
}

// registrationSamples are those of APIServices: a name says what it is of.
func registrationSamples() map[schema.GroupVersionResource]runtime.Object {
	return map[schema.GroupVersionResource]runtime.Object{
		v1.SchemeGroupVersion.WithResource("apiservices"): &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
			"metadata": map[string]any{"name": "v1.registration.sample.test"},
			"spec": map[string]any{"group": "registration.sample.test", "version": "v1",
				"groupPriorityMinimum": int64(1), "versionPriority": int64(1)}}},
	}
}
