// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1 "k8s.io/api/core/v1"
)

// FuzzPatch: whatever patch of whatever kind a client sends to the running server, it is applied or refused, and never makes it
// panic, which a client would be told. (Some patches that make no sense are answered with 500 by the library.)
func FuzzPatch(f *testing.F) {
	kinds := []types.PatchType{types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType}
	for kind, bodies := range [][]string{
		{`[{"op":"add","path":"/metadata/labels/a","value":"b"}]`, `[{"op":"copy","from":"/spec","path":"/spec/containers/0"}]`, `[{"op":"remove","path":"/spec/containers/-1"}]`,
			`[{"op":"move","from":"/metadata","path":"/metadata/labels"}]`, `[{"op":"test","path":"","value":null}]`, `[null]`, `[{"op":"replace","path":"/metadata","value":[]}]`},
		{`{"metadata":null}`, `{"spec":{"containers":null}}`, `{"metadata":{"labels":{"a":null}}}`, `{"spec":[]}`, `null`, `[]`, `{"data":{"a":1}}`},
		{`{"spec":{"containers":[{"$patch":"delete","name":"main"}]}}`, `{"spec":{"$setElementOrder/containers":[{"name":"x"}],"containers":[{"name":"main","image":"i"}]}}`,
			`{"metadata":{"$retainKeys":["name"]}}`, `{"$patch":"replace"}`, `{"spec":{"containers":[{"$patch":5}]}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":[{}]}}`},
		{"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: main, image: x}]}\n", "apiVersion: v1\nkind: Pod\nmetadata: {name: p, managedFields: [{}]}\n",
			"a: &a [*a]", "kind: Pod", "apiVersion: v1\nkind: Pod\nspec: {containers: [{image: x}, {image: y}]}\n"},
	} {
		for _, body := range bodies {
			f.Add(uint8(kind), true, []byte(body))
			f.Add(uint8(kind), false, []byte(body))
		}
	}
	c := clientOf(f, shared.srv.Loopback())
	ns := namespace(f, c)
	createPod(f, c, ns, pod("p"))
	if _, err := c.CoreV1().ConfigMaps(ns).Create(f.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Data: map[string]string{"a": "b"}}, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, kind uint8, ofPod bool, body []byte) {
		o := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
		how := kinds[int(kind)%len(kinds)]
		if how == types.ApplyYAMLPatchType {
			o.FieldManager = "fuzz"
		}
		resource := "configmaps"
		if ofPod {
			resource = "pods"
		}
		err := c.CoreV1().RESTClient().Patch(how).Namespace(ns).Resource(resource).Name("p").VersionedParams(&o, metav1.ParameterCodec).Body(body).Do(t.Context()).Error()
		var status apierrors.APIStatus
		if err != nil && !errors.As(err, &status) {
			t.Errorf("no answer: %v", err)
		}
		if err != nil && strings.Contains(err.Error(), "panic") {
			t.Errorf("%s of %s: %v", how, resource, err)
		}
	})
}
