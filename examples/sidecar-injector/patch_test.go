// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SC-22: the sidecar is first, whether or not there are init containers, and never there twice.
func TestPatch(t *testing.T) {
	s := corev1.Container{Name: sidecarName}
	plain, withInit, with := &corev1.Pod{}, &corev1.Pod{}, &corev1.Pod{}
	withInit.Spec.InitContainers = []corev1.Container{{Name: "a"}}
	with.Spec.InitContainers = []corev1.Container{{Name: "a"}, s}
	if p := Patch(plain, s); len(p) != 1 || p[0].Path != "/spec/initContainers" {
		t.Errorf("no init containers: %v", p)
	}
	if p := Patch(withInit, s); len(p) != 1 || p[0].Path != "/spec/initContainers/0" {
		t.Errorf("init containers: %v", p)
	}
	if p := Patch(with, s); p != nil {
		t.Errorf("the sidecar is there: %v", p)
	}
}

// What is no pod is refused, what is no review is an error.
func TestServeRefuses(t *testing.T) {
	ask := func(body any) (*admissionv1.AdmissionResponse, int) {
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		injector{image: "i"}.serve(w, httptest.NewRequestWithContext(t.Context(), "POST", "/inject", bytes.NewReader(raw)))
		var review admissionv1.AdmissionReview
		_ = json.Unmarshal(w.Body.Bytes(), &review)
		return review.Response, w.Code
	}
	if _, code := ask("x"); code != 400 {
		t.Errorf("no review: %d", code)
	}
	about := func(resource string) admissionv1.AdmissionReview {
		return admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: "u", Resource: metav1.GroupVersionResource{Version: "v1", Resource: resource}}}
	}
	if r, _ := ask(about("services")); r == nil || r.Allowed || r.UID != "u" || !strings.Contains(r.Result.Message, "about pods") {
		t.Errorf("a service: %+v", r)
	}
	review := about("pods")
	review.Request.Object.Raw = []byte(`{"metadata":{"name":"p"}}`)
	if r, _ := ask(review); r == nil || !r.Allowed || r.PatchType == nil || !strings.Contains(string(r.Patch), `"image":"i"`) {
		t.Errorf("a pod: %+v", r)
	}
}

// SC-22: what is printed to be applied is all that the webhook needs, in the namespace that was asked for.
func TestManifests(t *testing.T) {
	var out bytes.Buffer
	if err := run(context.Background(), []string{"manifests", "-namespace", "team"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind: Secret", "kind: Service", "kind: Pod", "kind: MutatingWebhookConfiguration", "namespace: team", "caBundle: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
