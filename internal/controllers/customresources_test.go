// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
)

// boats installs a definition and returns when it is served.
func boats(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	crds := extensions.NewForConfigOrDie(server.Loopback()).ApiextensionsV1().CustomResourceDefinitions()
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "boats.harbour.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "harbour.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "boats", Kind: "Boat"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)},
			}}},
		},
	}
	crd, err := crds.Create(ctx, crd, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = crds.Delete(ctx, crd.Name, metav1.DeleteOptions{}) })
	w, err := crds.Watch(ctx, metav1.ListOptions{ResourceVersion: crd.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		seen, ok := e.Object.(*apiextensionsv1.CustomResourceDefinition)
		if ok && slices.ContainsFunc(seen.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}) {
			return
		}
	}
	t.Fatal("the watch of the definition ended")
}

// TestNamespaceWithCustomResources: PL-10, custom resources go with their namespace, and hold it as long as they have finalizers.
// ATTACK C33.
func TestNamespaceWithCustomResources(t *testing.T) {
	client := start(t)
	ctx := context.Background()
	boats(t)
	ns := newNamespace(t, client)
	fleet := dynamic.NewForConfigOrDie(server.Loopback()).Resource(schema.GroupVersionResource{Group: "harbour.example.com", Version: "v1", Resource: "boats"}).Namespace(ns)
	for name, finalizers := range map[string][]string{"free": nil, "moored": {"harbour.example.com/rope"}} {
		boat := &unstructured.Unstructured{}
		boat.SetAPIVersion("harbour.example.com/v1")
		boat.SetKind("Boat")
		boat.SetName(name)
		boat.SetFinalizers(finalizers)
		if _, err := fleet.Create(ctx, boat, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, client, "", "namespaces", func(e watch.Event) bool {
		n := e.Object.(*corev1.Namespace)
		return n.Name == ns && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NamespaceCondition) bool {
			return c.Type == corev1.NamespaceContentRemaining && c.Status == corev1.ConditionTrue &&
				c.Message == "Some resources are remaining: boats.harbour.example.com. has 1 resource instances"
		})
	})
	if _, err := fleet.Patch(ctx, "moored", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, client, "", "namespaces", func(e watch.Event) bool {
		n := e.Object.(*corev1.Namespace)
		return n.Name == ns && e.Type == watch.Deleted
	})
}
