// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// frontPool is what other API servers are told to believe.
func frontPool(t *testing.T, config *rest.Config) *x509.CertPool {
	t.Helper()
	m, err := clientOf(t, config).CoreV1().ConfigMaps("kube-system").Get(t.Context(),
		"extension-apiserver-authentication", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(m.Data["requestheader-client-ca-file"])) ||
		m.Data["requestheader-allowed-names"] != `["front-proxy-client"]` || m.Data["client-ca-file"] == "" {
		t.Fatalf("got %v", m.Data)
	}
	return pool
}

// Another API server answers for its group as if this one did: discovery, documents, reading, watching, streams,
// for whom this server lets, and says who asks; when it goes, the answer says so, and when its APIService goes, nothing
// is left. Proves WL-08.
func TestAggregatedServer(t *testing.T) {
	config := adminConfig(t)
	c, regs := clientOf(t, config), registrations(t, config)
	ns := namespace(t, c)
	other := newOtherServer(t, "boats."+ns+".example.com", "boats", ns, frontPool(t, config))
	if _, err := c.CoreV1().Services(ns).Create(t.Context(), onThisMachine("boats", other.port()),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := apiService(other, ns, "boats")
	if _, err := regs.ApiregistrationV1().APIServices().Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	deleted := false
	remove := func() {
		if !deleted {
			deleted = true
			if err := regs.ApiregistrationV1().APIServices().Delete(context.WithoutCancel(t.Context()), s.Name,
				metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(remove)
	awaitAvailable(t, regs, s.Name, v1.ConditionTrue, "Passed")

	boats := dynamicOf(t, config).Resource(schema.GroupVersionResource{Group: other.group, Version: "v1",
		Resource: "boats"})
	testAggregatedReading(t, other, boats.Namespace("harbour").List, boats.Namespace("harbour").Watch)
	testAggregatedDocuments(t, other, config)
	testAggregatedStream(t, other, config)

	jane := rest.AnonymousClientConfig(config)
	jane.BearerToken = "jane-token"
	_, err := dynamicOf(t, jane).Resource(schema.GroupVersionResource{Group: other.group, Version: "v1",
		Resource: "boats"}).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("who may not list boats was answered with %v", err)
	}

	other.end()
	_, err = boats.List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "APIService "+s.Name) {
		t.Errorf("without the other server: %v", err)
	}
	// It is looked at every 30 s, and when something about its Service changes.
	if _, err := c.CoreV1().Services(ns).Patch(t.Context(), "boats", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"sunk":"yes"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitAvailable(t, regs, s.Name, v1.ConditionFalse, "FailedDiscoveryCheck")
	_, err = boats.List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "APIService "+s.Name) {
		t.Errorf("without the other server, once that is known: %v", err)
	}
	if _, err := c.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("pods beside a group that is away: %v", err)
	}
	remove()
	testAggregatedGone(t, other, config)
}

func testAggregatedReading(t *testing.T, other *otherServer,
	list func(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error),
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error)) {
	t.Helper()
	got, err := list(t.Context(), metav1.ListOptions{})
	if err != nil || len(got.Items) != 1 || got.Items[0].GetName() != "dinghy" {
		t.Fatalf("got %v, %v", got, err)
	}
	asked := other.last("/apis/" + other.group + "/v1/namespaces/harbour/boats")
	if asked.name != "front-proxy-client" || asked.user == "" || asked.authorization != "" ||
		!slices.Contains(asked.groups, "system:masters") {
		t.Errorf("the other server was told %+v", asked)
	}
	w, err := follow(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	select {
	case e := <-w.ResultChan():
		if u, ok := e.Object.(*unstructured.Unstructured); !ok || u.GetName() != "punt" {
			t.Errorf("the watch said %v", e)
		}
	case <-time.After(30 * time.Second):
		t.Error("the watch said nothing")
	}
}

func testAggregatedDocuments(t *testing.T, other *otherServer, config *rest.Config) {
	t.Helper()
	c := clientOf(t, config).Discovery()
	get := func(path, as string) string {
		text, err := c.RESTClient().Get().AbsPath(path).SetHeader("Accept", as).DoRaw(t.Context())
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return string(text)
	}
	for _, d := range []struct{ path, as, want string }{
		{"/apis", "application/json", `"name":"` + other.group + `"`},
		{"/apis/" + other.group, "application/json", `"preferredVersion":{"groupVersion":"` + other.group + `/v1"`},
		{"/apis/" + other.group + "/v1", "application/json", `"boats"`},
		{"/openapi/v3", "application/json", `"apis/` + other.group + `/v1":{"serverRelativeURL":`},
		{"/openapi/v3", "application/json", `"apis/apps/v1":{"serverRelativeURL":`},
		{"/openapi/v2", "application/json", `"/apis/` + other.group + `/v1/boats":`},
		{"/openapi/v2", "application/json", `"/apis/apps/v1/deployments":`},
		{"/openapi/v2", openAPIv2Protobuf, "/apis/" + other.group + "/v1/boats"},
		{"/openapi/v3/apis/" + other.group + "/v1", "application/json", `"title":"boats"`},
	} {
		if got := get(d.path, d.as); !strings.Contains(got, d.want) {
			t.Errorf("%s has no %s: %.300s", d.path, d.want, got)
		}
	}
	const aggregatedList = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	patience := time.Now().Add(30 * time.Second) // the library tells nobody when it has read another server's resources
	for !strings.Contains(get("/apis", aggregatedList), `"resource":"boats"`) {
		if time.Now().After(patience) {
			t.Fatalf("boats are not in the aggregated list")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if out := kubectl(t, "", "get", "boats", "-n", "harbour", "-o", "name"); !strings.Contains(out, "/dinghy") {
		t.Errorf("kubectl get boats: %s", out)
	}
	if out := kubectl(t, "", "get", "apiservices", "v1."+other.group); !strings.Contains(out, "/boats") ||
		!strings.Contains(out, "True") {
		t.Errorf("kubectl get apiservices: %s", out)
	}
}

// testAggregatedStream goes through with another protocol than HTTP.
func testAggregatedStream(t *testing.T, other *otherServer, config *rest.Config) {
	t.Helper()
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(config.Host, "https://"), tlsConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /apis/%s/v1/namespaces/harbour/boats/dinghy/hail HTTP/1.1\r\nHost: x\r\n"+
		"Authorization: Bearer root-token\r\nConnection: Upgrade\r\nUpgrade: hail\r\n\r\n", other.group)
	answers := bufio.NewReader(conn)
	resp, err := http.ReadResponse(answers, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %v, %v", resp, err)
	}
	fmt.Fprint(conn, "ahoy\n")
	if line, err := answers.ReadString('\n'); err != nil || line != "AHOY\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

func testAggregatedGone(t *testing.T, other *otherServer, config *rest.Config) {
	t.Helper()
	c := clientOf(t, config).Discovery().RESTClient()
	patience := time.Now().Add(30 * time.Second)
	for {
		_, err := c.Get().AbsPath("/apis/" + other.group + "/v1").DoRaw(t.Context())
		plain, listErr := c.Get().AbsPath("/apis").SetHeader("Accept", "application/json").DoRaw(t.Context())
		if apierrors.IsNotFound(err) && listErr == nil && !strings.Contains(string(plain), other.group) {
			return
		}
		if time.Now().After(patience) {
			t.Fatalf("after the APIService: %v; %v", err, listErr)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Every group and version of this server has an APIService that says so, those of custom resources come and go with
// them, and nobody can give the server's own groups away. Proves WL-08.
func TestOwnAPIServices(t *testing.T) {
	config := adminConfig(t)
	regs := registrations(t, config).ApiregistrationV1().APIServices()
	list, err := regs.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"v1.", "v1.apps", "v2.autoscaling", "v1.autoscaling", "v1beta1.metrics.k8s.io",
		"v1.apiextensions.k8s.io", "v1.debug.wherry.dev"} {
		i := slices.IndexFunc(list.Items, func(s v1.APIService) bool { return s.Name == want })
		if i < 0 {
			t.Errorf("there is no APIService %s", want)
			continue
		}
		s := list.Items[i]
		if s.Spec.Service != nil || len(s.Status.Conditions) != 1 ||
			s.Status.Conditions[0].Status != v1.ConditionTrue ||
			s.Status.Conditions[0].Reason != "Local" {
			t.Errorf("%s: %+v", want, s)
		}
	}
	for _, name := range []string{"v1.apps", "v1.", "v1.debug.wherry.dev"} {
		s, err := regs.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.Spec.Service = &v1.ServiceReference{Namespace: "default", Name: "kubernetes"}
		s.Spec.InsecureSkipTLSVerify = true
		_, err = regs.Update(t.Context(), s, metav1.UpdateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.service") {
			t.Errorf("%s given away: %v", name, err)
		}
	}

	e := define(t, config, widgets)
	await := func(name string, there bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		w, err := regs.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		_, err = regs.Get(ctx, name, metav1.GetOptions{}) // after the watch: what comes since is seen
		if there && err == nil || !there && apierrors.IsNotFound(err) {
			return
		}
		for e := range w.ResultChan() {
			if there == (e.Type != watch.Deleted) {
				return
			}
		}
		t.Fatalf("%s: there %t: not within 30 s", name, there)
	}
	await("v1."+e.group, true)
	await("v1beta1."+e.group, true)
	crds, err := e.crds.ApiextensionsV1().CustomResourceDefinitions().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds.Items {
		if crd.Spec.Group == e.group {
			removeCRD(t, e, &crd)
		}
	}
	await("v1."+e.group, false)
	await("v1beta1."+e.group, false)
}

func removeCRD(t *testing.T, e extension, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	err := e.crds.ApiextensionsV1().CustomResourceDefinitions().Delete(t.Context(), crd.Name, metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
