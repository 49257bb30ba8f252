// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/store"
)

// converter is a conversion webhook: v1's spec.color is v2's spec.paint.
func converter(t *testing.T) *httptest.Server {
	t.Helper()
	rename := func(u *unstructured.Unstructured, version string) {
		from, to := "color", "paint"
		if strings.HasSuffix(version, "/v1") {
			from, to = to, from
		}
		if v, ok, _ := unstructured.NestedString(u.Object, "spec", from); ok {
			unstructured.RemoveNestedField(u.Object, "spec", from)
			_ = unstructured.SetNestedField(u.Object, v, "spec", to)
		}
		u.SetAPIVersion(version)
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review apiextensionsv1.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID,
			Result: metav1.Status{Status: metav1.StatusSuccess}}
		for _, raw := range review.Request.Objects {
			u := &unstructured.Unstructured{}
			if err := json.Unmarshal(raw.Raw, u); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			if _, broken := u.GetAnnotations()["broken"]; broken {
				review.Response.Result = metav1.Status{Status: metav1.StatusFailure,
					Message: "this one cannot be converted"}
			}
			rename(u, review.Request.DesiredAPIVersion)
			review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: u})
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(s.Close)
	return s
}

const convertible = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {color: {type: string}}}}}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {paint: {type: string}}}}}}
`

// A webhook converts between versions; what it says when it cannot reaches the client.
func TestCustomResourceConversionWebhook(t *testing.T) {
	ns := namespace(t, client(t))
	e := define(t, adminConfig(t), convertible)
	hook := converter(t)
	crds := e.crds.ApiextensionsV1().CustomResourceDefinitions()
	crd, err := crds.Get(t.Context(), "widgets."+e.group, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				URL:      ptr.To(hook.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}),
			},
		}}
	if _, err := crds.Update(t.Context(), crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	v1, v2 := e.widgets("v1", ns), e.widgets("v2", ns)
	if _, err := v1.Create(t.Context(), e.widget(t, "a", "{color: red}"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	u, err := v2.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || field(u, "spec", "paint") != "red" {
		t.Fatalf("as v2: %v, %v", u, err)
	}
	if err := unstructured.SetNestedField(u.Object, "green", "spec", "paint"); err != nil {
		t.Fatal(err)
	}
	if _, err := v2.Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if u, err := v1.Get(t.Context(), "a", metav1.GetOptions{}); err != nil || field(u, "spec", "color") != "green" {
		t.Errorf("back as v1: %v, %v", u, err)
	}
	broken := e.widget(t, "broken", "{color: red}")
	broken.SetAnnotations(map[string]string{"broken": "yes"})
	if _, err := v1.Create(t.Context(), broken, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := v2.Get(t.Context(), "broken", metav1.GetOptions{}); err == nil ||
		!strings.Contains(err.Error(), "this one cannot be converted") {
		t.Errorf("a conversion that fails: %v", err)
	}
	if err := v1.Delete(t.Context(), "broken", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// A restarted server is ready only when it serves the definitions it had, with their objects and discovery.
func TestCustomResourcesAfterRestart(t *testing.T) {
	dir := t.TempDir()
	run := func() (*api.Server, func()) {
		db, err := store.Start(t.Context(), store.Config{Dir: filepath.Join(dir, "etcd")})
		if err != nil {
			t.Fatal(err)
		}
		s, stop := serve(t, api.Config{DataDir: dir, BindAddress: "127.0.0.1", EtcdServers: []string{db.Endpoint()}})
		return s, func() {
			stop()
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	s, stop := run()
	ns := namespace(t, clientOf(t, configOf(t, s)))
	e := define(t, configOf(t, s), widgets)
	if _, err := e.widgets("v1", ns).Create(t.Context(), e.widget(t, "kept", "{color: red}"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	stop()

	s, stop = run()
	defer stop()
	// One request each, and no retry: ready means it is there.
	again := dynamicOf(t, configOf(t, s))
	u, err := again.Resource(schema.GroupVersionResource{Group: e.group, Version: "v1",
		Resource: "widgets"}).Namespace(ns).Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || field(u, "spec", "color") != "red" {
		t.Errorf("after a restart: %v, %v", u, err)
	}
	c := clientOf(t, configOf(t, s))
	for how, d := range map[string]interface {
		ServerGroups() (*metav1.APIGroupList, error)
	}{"aggregated": c.Discovery(), "plain": c.Discovery().WithLegacy()} {
		groups, err := d.ServerGroups()
		if err != nil || !strings.Contains(groups.String(), e.group) {
			t.Errorf("%s discovery lacks %s: %v", how, e.group, err)
		}
	}
}
