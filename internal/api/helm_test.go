// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// chart is what a chart renders to: a definition comes first, then what uses it.
const chart = `
{apiVersion: v1, kind: ServiceAccount, metadata: {name: shop}}
---
{apiVersion: v1, kind: Secret, metadata: {name: shop}, stringData: {password: x}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: shop}, data: {color: red}}
---
{apiVersion: v1, kind: Service, metadata: {name: shop}, spec: {selector: {app: shop}, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: shop, labels: {app: shop}}, spec: {serviceAccountName: shop, containers: [{name: main, image: "registry.example/shop:1"}]}}
---
{apiVersion: GROUP/v1, kind: Widget, metadata: {name: shop}, spec: {color: red}}
`

// helm makes the calls of Helm 4: discovery and a REST mapper, server-side apply with its own manager, releases in
// Secrets of its own type found by labels, watches of what it waits for.
type helm struct {
	*dynamic.DynamicClient
	mapper meta.RESTMapper
	ns     string
}

func (h helm) resource(t *testing.T, u *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	gvk := u.GroupVersionKind()
	mapping, err := h.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Fatal(err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return h.Resource(mapping.Resource)
	}
	return h.Resource(mapping.Resource).Namespace(h.ns)
}

func rendered(t *testing.T, text string) (all []*unstructured.Unstructured) {
	t.Helper()
	for part := range strings.SplitSeq(text, "---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(part), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetLabels(mergeLabels(u.GetLabels(), map[string]string{"app.kubernetes.io/managed-by": "Helm"}))
		u.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "shop"})
		all = append(all, u)
	}
	return all
}

func mergeLabels(a, b map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// release is how Helm keeps what it did.
func (h helm) release(version int, status string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("sh.helm.release.v1.shop.v%d", version),
			Labels: map[string]string{"owner": "helm", "name": "shop", "status": status,
				"version": fmt.Sprint(version)},
		},
		Type: "helm.sh/release.v1",
		Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("manifest ",
			50_000))))},
	}
}

// An installation, an upgrade that somebody else's change stands against, and an uninstallation, as Helm 4 does them.
func TestHelmCalls(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	e := define(t, adminConfig(t), widgets)
	h := helm{e.DynamicClient, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Discovery())), ns}
	secrets := c.CoreV1().Secrets(ns)
	first := h.release(1, "pending-install")
	if _, err := secrets.Create(t.Context(), first, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	force := metav1.ApplyOptions{FieldManager: "helm"}
	objects := rendered(t, strings.ReplaceAll(chart, "GROUP", e.group))
	for _, u := range objects {
		r := h.resource(t, u)
		if _, err := r.Get(t.Context(), u.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) &&
			u.GetKind() != "ServiceAccount" {
			t.Errorf("%s before its time: %v", u.GetKind(), err)
		}
		dry := force
		dry.DryRun = []string{metav1.DryRunAll}
		if _, err := r.Apply(t.Context(), u.GetName(), u, dry); err != nil {
			t.Errorf("dry run of %s: %v", u.GetKind(), err)
		}
		if _, err := r.Apply(t.Context(), u.GetName(), u, force); err != nil {
			t.Fatalf("%s: %v", u.GetKind(), err)
		}
	}
	first.Labels["status"] = "deployed"
	if _, err := secrets.Update(t.Context(), first, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	testHelmWait(t, h)

	if _, err := c.CoreV1().ConfigMaps(ns).Patch(t.Context(), "shop", types.MergePatchType,
		[]byte(`{"data":{"color":"blue"}}`), metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}
	cm := objects[2]
	if err := unstructured.SetNestedField(cm.Object, "green", "data", "color"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.resource(t, cm).Apply(t.Context(), "shop", cm, force); !apierrors.IsConflict(err) ||
		!strings.Contains(err.Error(), `"somebody"`) {
		t.Errorf("a field of somebody else: %v", err)
	}
	force.Force = true
	if u, err := h.resource(t, cm).Apply(t.Context(), "shop", cm, force); err != nil ||
		field(u, "data", "color") != "green" {
		t.Errorf("forced: %v, %v", u, err)
	}

	list, err := secrets.List(t.Context(), metav1.ListOptions{LabelSelector: "name=shop,owner=helm,status=deployed",
		FieldSelector: "type=helm.sh/release.v1"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != first.Name {
		t.Errorf("releases: %v, %v", list, err)
	}
	background := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	for _, u := range objects {
		if err := h.resource(t, u).Delete(t.Context(), u.GetName(), background); err != nil {
			t.Errorf("delete %s: %v", u.GetKind(), err)
		}
	}
	if err := secrets.Delete(t.Context(), first.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// testHelmWait waits as Helm's watcher does: an informer per kind, selected by labels, until a status says so.
func testHelmWait(t *testing.T, h helm) {
	t.Helper()
	ready := make(chan string, 10)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(h, 0, h.ns,
		func(o *metav1.ListOptions) { o.LabelSelector = "app=shop" })
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	look := func(obj any) {
		conditions, _, _ := unstructured.NestedSlice(obj.(*unstructured.Unstructured).Object, "status", "conditions")
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok && m["type"] == "Ready" && m["status"] == "True" {
				ready <- obj.(*unstructured.Unstructured).GetName()
			}
		}
	}
	if _, err := factory.ForResource(pods).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look,
		UpdateFunc: func(_, obj any) { look(obj) }}); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	factory.Start(stop)
	defer factory.Shutdown()
	defer close(stop)
	factory.WaitForCacheSync(stop)
	status := []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	if _, err := h.Resource(pods).Namespace(h.ns).Patch(t.Context(), "shop", types.MergePatchType, status,
		metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	if got := <-ready; got != "shop" {
		t.Errorf("%s is ready", got)
	}
}
