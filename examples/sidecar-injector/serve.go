// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxReview bounds what is read of a review: twice the largest object that the API server stores.
const maxReview = 3 << 20

// injector answers AdmissionReviews about pods.
type injector struct{ image string }

func (i injector) serve(w http.ResponseWriter, req *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxReview)).Decode(&review); err != nil ||
		review.Request == nil {
		http.Error(w, "this is not an AdmissionReview with a request", http.StatusBadRequest)
		return
	}
	answer := i.review(review.Request)
	answer.UID = review.Request.UID
	review.Request, review.Response = nil, answer
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		fmt.Println("answer:", err) // whoever asked has gone
	}
}

// review refuses what it does not understand: better no pod than one without its sidecar.
func (i injector) review(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	refuse := func(err error) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: err.Error(), Code: http.StatusBadRequest}}
	}
	if r.Resource != (metav1.GroupVersionResource{Version: "v1", Resource: "pods"}) {
		return refuse(fmt.Errorf("this webhook is about pods, not %s", r.Resource))
	}
	var pod corev1.Pod
	if err := json.Unmarshal(r.Object.Raw, &pod); err != nil {
		return refuse(err)
	}
	patch := Patch(&pod, sidecar(i.image))
	if patch == nil {
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return refuse(err)
	}
	kind := admissionv1.PatchTypeJSONPatch
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: raw, PatchType: &kind}
}
