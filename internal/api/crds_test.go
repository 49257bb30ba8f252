// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// widgets is a definition that uses what definitions can have; %[1]s is the group, a new one for each test.
const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.%[1]s
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [wi], categories: [all, gadgets]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
    selectableFields: [{jsonPath: .spec.color}]
    additionalPrinterColumns:
    - {name: Color, type: string, jsonPath: .spec.color}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    schema:
      openAPIV3Schema:
        type: object
        description: A Widget is a thing for tests.
        required: [spec]
        properties:
          spec:
            type: object
            required: [color]
            x-kubernetes-validations:
            - {rule: "self.replicas <= self.limit", message: "replicas must not exceed the limit"}
            - {rule: "self.color == oldSelf.color", message: "the color is for ever"}
            properties:
              color: {type: string, enum: [red, green], description: How the widget looks.}
              replicas: {type: integer, minimum: 0, default: 1}
              limit: {type: integer, default: 5}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, size: {type: integer}}
          status:
            type: object
            properties: {replicas: {type: integer}, selector: {type: string}, phase: {type: string}}
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// extension is a definition that a test has installed.
type extension struct {
	*dynamic.DynamicClient
	crds  *extensions.Clientset
	group string
}

func extensionsOf(t testing.TB, config *rest.Config) *extensions.Clientset {
	t.Helper()
	c, err := extensions.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// define installs a definition and waits until it is served.
func define(t *testing.T, config *rest.Config, manifest string) extension {
	t.Helper()
	group := strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")) + ".example.com"
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, manifest, group), crd); err != nil {
		t.Fatal(err)
	}
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	e := extension{d, extensionsOf(t, config), group}
	crds := e.crds.ApiextensionsV1().CustomResourceDefinitions()
	crd, err = crds.Create(t.Context(), crd, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = crds.Delete(context.WithoutCancel(t.Context()), crd.Name, metav1.DeleteOptions{})
	})
	e.await(t, crd, apiextensionsv1.Established)
	return e
}

// await waits for a condition of a definition.
func (e extension) await(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition,
	condition apiextensionsv1.CustomResourceDefinitionConditionType) {
	t.Helper()
	w, err := e.crds.ApiextensionsV1().CustomResourceDefinitions().Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + crd.Name, ResourceVersion: crd.ResourceVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for !slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == condition && c.Status == apiextensionsv1.ConditionTrue
	}) {
		ev := next(t, w)
		if ev.Type != watch.Modified {
			t.Fatalf("%s: %v", ev.Type, ev.Object)
		}
		crd = ev.Object.(*apiextensionsv1.CustomResourceDefinition)
	}
}

func (e extension) widgets(version, ns string) dynamic.ResourceInterface {
	return e.Resource(schema.GroupVersionResource{Group: e.group, Version: version, Resource: "widgets"}).Namespace(ns)
}

func (e extension) widget(t testing.TB, name, spec string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	text := fmt.Sprintf("{apiVersion: %s/v1, kind: Widget, metadata: {name: %s}, spec: %s}", e.group, name, spec)
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func field(u *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return v
}

// A custom resource has all that a built-in one has: schema, defaults, pruning, CEL rules, status, scale, apply,
// selectors, watches, tables, finalizers.
func TestCustomResources(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	e := define(t, adminConfig(t), widgets)
	w := e.widgets("v1", ns)
	watching, err := w.Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.color=red"})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()

	made, err := w.Create(t.Context(), e.widget(t, "a", "{color: red, unknown: 1}"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if field(made, "spec", "replicas") != int64(1) || field(made, "spec", "limit") != int64(5) ||
		field(made, "spec", "unknown") != nil {
		t.Errorf("defaults and pruning: %v", made.Object["spec"])
	}
	if _, err := w.Create(t.Context(), e.widget(t, "g", "{color: green}"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if ev := next(t, watching); ev.Type != watch.Added || ev.Object.(*unstructured.Unstructured).GetName() != "a" {
		t.Errorf("watch: %s %v", ev.Type, ev.Object)
	}
	for spec, want := range map[string]string{
		"{color: blue}":             `spec.color: Unsupported value: "blue"`,
		"{color: red, replicas: 9}": "replicas must not exceed the limit",
		"{replicas: 1}":             "spec.color: Required value",
		"{color: red, limit: many}": "spec.limit: Invalid value",
	} {
		if _, err := w.Create(t.Context(), e.widget(t, "bad", spec),
			metav1.CreateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
	_, err = w.Create(t.Context(), e.widget(t, "strict", "{color: red, unknown: 1}"),
		metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "spec.unknown"`) {
		t.Errorf("strict: %v", err)
	}
	if _, err := w.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"color":"green"}}`),
		metav1.PatchOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "for ever") {
		t.Errorf("transition rule: %v", err)
	}
	testCustomStatusAndScale(t, w)
	testCustomApply(t, e, w)

	list, err := w.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.color=green"})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetName() != "g" {
		t.Errorf("selectable field: %v, %v", list, err)
	}
	out := kubectl(t, "", "-n", ns, "get", "wi")
	if !strings.Contains(out, "COLOR") || !strings.Contains(out, "REPLICAS") || !strings.Contains(out, "green") {
		t.Errorf("table:\n%s", out)
	}
	testCustomDeletion(t, e, w)
}

func testCustomStatusAndScale(t *testing.T, w dynamic.ResourceInterface) {
	t.Helper()
	if u, err := w.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"status":{"phase":"x"}}`),
		metav1.PatchOptions{}); err != nil || field(u, "status") != nil || u.GetGeneration() != 1 {
		t.Errorf("a write of the object touched its status: %v, %v", u, err)
	}
	u, err := w.Patch(t.Context(), "a", types.MergePatchType,
		[]byte(`{"status":{"phase":"Up","replicas":3,"selector":"app=a"},"spec":{"replicas":2}}`),
		metav1.PatchOptions{}, "status")
	if err != nil || field(u, "status", "phase") != "Up" || field(u, "spec", "replicas") != int64(1) {
		t.Errorf("status: %v, %v", u, err)
	}
	scale, err := w.Get(t.Context(), "a", metav1.GetOptions{}, "scale")
	if err != nil || field(scale, "spec", "replicas") != int64(1) || field(scale, "status", "replicas") != int64(3) ||
		field(scale, "status", "selector") != "app=a" {
		t.Errorf("scale: %v, %v", scale, err)
	}
	if _, err := w.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"replicas":4}}`),
		metav1.PatchOptions{}, "scale"); err != nil {
		t.Errorf("set the scale: %v", err)
	}
	u, err = w.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || field(u, "spec", "replicas") != int64(4) || u.GetGeneration() != 2 {
		t.Errorf("scaled: %v, %v", u, err)
	}
}

func testCustomApply(t *testing.T, e extension, w dynamic.ResourceInterface) {
	t.Helper()
	first := e.widget(t, "applied", "{color: red, parts: [{name: wheel, size: 1}]}")
	if _, err := w.Apply(t.Context(), "applied", first, metav1.ApplyOptions{FieldManager: "one"}); err != nil {
		t.Fatal(err)
	}
	second := e.widget(t, "applied", "{color: red, parts: [{name: door, size: 2}]}")
	u, err := w.Apply(t.Context(), "applied", second, metav1.ApplyOptions{FieldManager: "two"})
	if parts, ok := field(u, "spec", "parts").([]any); err != nil || !ok || len(parts) != 2 {
		t.Errorf("lists by key are merged: %v, %v", u, err)
	}
	third := e.widget(t, "applied", "{color: red, parts: [{name: wheel, size: 9}]}")
	if _,
		err := w.Apply(t.Context(), "applied", third,
		metav1.ApplyOptions{FieldManager: "two"}); !apierrors.IsConflict(err) {
		t.Errorf("a field of another manager: %v", err)
	}
	if err := w.Delete(t.Context(), "applied", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// testCustomDeletion deletes an instance with a finalizer, then the definition, which takes the instances along.
func testCustomDeletion(t *testing.T, e extension, w dynamic.ResourceInterface) {
	t.Helper()
	if _, err := w.Patch(t.Context(), "a", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":["example.com/hold"]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	u, err := w.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || u.GetDeletionTimestamp() == nil {
		t.Fatalf("held by its finalizer: %v, %v", u, err)
	}
	crds := e.crds.ApiextensionsV1().CustomResourceDefinitions()
	name := "widgets." + e.group
	if err := crds.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	crd, err := crds.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e.await(t, crd, apiextensionsv1.Terminating)
	watching, err := crds.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	if _, err := w.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(time.Minute)
	for gone := false; !gone; {
		select {
		case ev := <-watching.ResultChan():
			gone = ev.Type == watch.Deleted
		case <-deadline:
			t.Fatal("the definition stays")
		}
	}
}

// Several versions of a definition show the same objects; a deprecated one warns.
func TestCustomResourceVersions(t *testing.T) {
	ns := namespace(t, client(t))
	config := adminConfig(t)
	warnings := &warned{}
	config.WarningHandler = warnings
	e := define(t, config, widgets)
	if _, err := e.widgets("v1", ns).Create(t.Context(), e.widget(t, "a", "{color: red}"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	old, err := e.widgets("v1beta1", ns).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || old.GetAPIVersion() != e.group+"/v1beta1" || field(old, "spec", "color") != "red" {
		t.Errorf("v1beta1: %v, %v", old, err)
	}
	if !warnings.has("v1beta1 Widget is deprecated") {
		t.Errorf("no warning of the deprecated version: %q", warnings.said)
	}
	if _, err := e.widgets("v2", ns).Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a version that is not served: %v", err)
	}
}

// warned collects the warnings of a client.
type warned struct{ said []string }

// HandleWarningHeader implements rest.WarningHandler.
func (w *warned) HandleWarningHeader(_ int, _, text string) { w.said = append(w.said, text) }

func (w *warned) has(part string) bool {
	return slices.ContainsFunc(w.said, func(s string) bool { return strings.Contains(s, part) })
}

func dynamicOf(t testing.TB, config *rest.Config) *dynamic.DynamicClient {
	t.Helper()
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
