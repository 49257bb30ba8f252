// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// TestTolerationsAreAdded proves that a pod that is bound may get more tolerations, by any kind of patch, and lose
// none.
func TestTolerationsAreAdded(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	added := `{"key":"a","operator":"Exists","effect":"NoExecute"}`
	for way, row := range map[string]struct {
		kind types.PatchType
		body string
	}{
		"strategic": {types.StrategicMergePatchType, `{"spec":{"tolerations":[` + added + `]}}`},
		"merge":     {types.MergePatchType, `{"spec":{"tolerations":[` + added + `]}}`},
		"json":      {types.JSONPatchType, `[{"op":"add","path":"/spec/tolerations/-","value":` + added + `}]`},
	} {
		boundPod(t, c, ns, pod(way))
		p, err := c.CoreV1().Pods(ns).Patch(t.Context(), way, row.kind, []byte(row.body), metav1.PatchOptions{})
		if err != nil {
			t.Errorf("%s: %v", way, err)
			continue
		}
		var keys []string
		for _, has := range p.Spec.Tolerations {
			keys = append(keys, has.Key)
		}
		slices.Sort(keys)
		if want := []string{"a", corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable}; !slices.Equal(keys, want) ||
			p.Generation != 2 {
			t.Errorf("%s: tolerations %v, generation %d", way, keys, p.Generation)
		}
		_, err = c.CoreV1().Pods(ns).Patch(t.Context(), way, types.MergePatchType,
			[]byte(`{"spec":{"tolerations":[]}}`), metav1.PatchOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "existing toleration can not be modified") {
			t.Errorf("%s: taken away: %v", way, err)
		}
	}
}

// TestNegativeGrace proves that a negative grace period is one second, as it is in Kubernetes (PL-10).
func TestNegativeGrace(t *testing.T) {
	c := client(t)
	p := pod("p")
	p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](-5)
	if p = createPod(t, c, namespace(t, c), p); *p.Spec.TerminationGracePeriodSeconds != 1 {
		t.Errorf("stored with %d", *p.Spec.TerminationGracePeriodSeconds)
	}
}

// TestUnknownMetadata proves that strict validation sees fields of metadata that there are not, of kinds of every sort.
func TestUnknownMetadata(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	e := define(t, adminConfig(t), widgets)
	owner := `"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"n","uid":"u","odd":1}]`
	for name, row := range map[string]struct{ path, body, want string }{
		"typed": {"/api/v1/namespaces/" + ns + "/configmaps", `{"metadata":{"name":"a","odd":1}}`,
			`unknown field \"metadata.odd\"`},
		"owner": {"/api/v1/namespaces/" + ns + "/configmaps", `{"metadata":{"name":"a",` + owner + `}}`,
			`unknown field \"metadata.ownerReferences[0].odd\"`},
		"twice": {"/api/v1/namespaces/" + ns + "/configmaps", `{"metadata":{"name":"a","name":"a"}}`,
			`duplicate field \"metadata.name\"`},
		"template": {"/api/v1/namespaces/" + ns + "/podtemplates",
			`{"metadata":{"name":"a"},"template":{"metadata":{"odd":1}}}`, `unknown field \"template.metadata.odd\"`},
		"our own": {"/apis/policy.wherry.dev/v1/imagepolicies", `{"metadata":{"name":"a","odd":1}}`,
			`unknown field \"metadata.odd\"`},
		"custom": {"/apis/" + e.group + "/v1/namespaces/" + ns + "/widgets",
			`{"apiVersion":"` + e.group +
				`/v1","kind":"Widget","metadata":{"name":"a","odd":1},"spec":{"color":"red"}}`,
			`unknown field \"metadata.odd\"`},
		"definition": {"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"metadata":{"name":"a","odd":1}}`,
			`unknown field \"metadata.odd\"`},
	} {
		answer, err := c.CoreV1().RESTClient().Post().AbsPath(row.path).Param("fieldValidation",
			"Strict").Param("dryRun", "All").
			SetHeader("Content-Type", "application/json").Body([]byte(row.body)).DoRaw(t.Context())
		if !apierrors.IsBadRequest(err) || !strings.Contains(string(answer), "strict decoding error: "+row.want) {
			t.Errorf("%s: %v: %s", name, err, answer)
		}
	}
}
