// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/wherryproject/wherry/internal/audit/trail"
)

// TestAuditOfGeneratedNames proves that an object whose name the server has made is found by that name in the audit
// log, of whatever kind it is: kinds with hooks of their own, and custom ones.
func TestAuditOfGeneratedNames(t *testing.T) {
	ns := namespace(t, client(t))
	e := define(t, adminConfig(t), widgets)
	for resource, of := range map[string]struct {
		gvr  schema.GroupVersionResource
		kind string
		with map[string]any
	}{
		"configmaps": {schema.GroupVersionResource{Version: "v1"}, "ConfigMap", nil},
		"services": {schema.GroupVersionResource{Version: "v1"}, "Service",
			map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}},
		"resourcequotas": {schema.GroupVersionResource{Version: "v1"}, "ResourceQuota", map[string]any{}},
		"limitranges":    {schema.GroupVersionResource{Version: "v1"}, "LimitRange", map[string]any{"limits": []any{}}},
		"widgets": {schema.GroupVersionResource{Group: e.group, Version: "v1"}, "Widget",
			map[string]any{"color": "red"}},
	} {
		t.Run(resource, func(t *testing.T) {
			of.gvr.Resource = resource
			obj := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": of.gvr.GroupVersion().String(), "kind": of.kind,
				"metadata": map[string]any{"generateName": "made-"}}}
			if of.with != nil {
				obj.Object["spec"] = of.with
			}
			made, err := e.Resource(of.gvr).Namespace(ns).Create(t.Context(), obj, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			found,
				_ := onRecord(t, auditLog(), ns,
				func(a *auditv1.Event) bool { return a.Verb == "create" && a.ObjectRef.Resource == resource })
			if !(trail.Filter{Name: made.GetName()}).Takes(found) {
				t.Errorf("%s is not found by its name: %v", made.GetName(), found.Annotations)
			}
		})
	}
}
