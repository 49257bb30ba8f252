// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// oneNode plays an API server with one node at most.
func oneNode(t *testing.T, stored *corev1.Node) (agent *Agent, now func() *corev1.Node) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Method == http.MethodPost:
			stored = &corev1.Node{}
			if err := json.Unmarshal(body, stored); err != nil {
				t.Error(err)
			}
		case stored == nil:
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
			return
		case r.Method == http.MethodPatch:
			was, _ := json.Marshal(stored)
			is, err := strategicpatch.StrategicMergePatch(was, body, corev1.Node{})
			if err != nil {
				t.Error(err)
			}
			stored = &corev1.Node{}
			if err := json.Unmarshal(is, stored); err != nil {
				t.Error(err)
			}
		}
		stored.TypeMeta = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}
		_ = json.NewEncoder(w).Encode(stored)
	}))
	t.Cleanup(api.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: api.URL,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	return &Agent{cfg: Config{NodeName: "n", Client: client}}, func() *corev1.Node { return stored }
}

// TestRegistration proves PL-36, as a kubelet registers: labels and taints that were chosen are on a node from when it is
// made, so that no pod comes in between. Of a node that there is the taints are others' matter, and so are the labels
// but for those that say where it is and what machine.
func TestRegistration(t *testing.T) {
	r := Registration{Labels: map[string]string{corev1.LabelTopologyZone: "z", "team": "a", corev1.LabelHostname: "h"},
		Taints: []corev1.Taint{{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}}
	a, stored := oneNode(t, nil)
	if _, err := a.object(t.Context(), r.Object("n")); err != nil {
		t.Fatal(err)
	}
	made := stored()
	if l := made.Labels; l[corev1.LabelTopologyZone] != "z" || l["team"] != "a" || l[corev1.LabelHostname] != "h" ||
		l[corev1.LabelOSStable] != "linux" {
		t.Errorf("labels of the new node: %v", l)
	}
	if len(made.Spec.Taints) != 1 || made.Spec.Taints[0].ToString() != "dedicated=gpu:NoSchedule" {
		t.Errorf("taints of the new node: %v", made.Spec.Taints)
	}

	a, stored = oneNode(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{
		"team": "b", "of": "others"}}})
	if _, err := a.object(t.Context(), r.Object("n")); err != nil {
		t.Fatal(err)
	}
	there := stored()
	want := with(Labels("n"), map[string]string{corev1.LabelTopologyZone: "z", "team": "b", "of": "others",
		corev1.LabelHostname: "h"})
	if !maps.Equal(there.Labels, want) {
		t.Errorf("labels of a node that there was: %v, want %v", there.Labels, want)
	}
	if len(there.Spec.Taints) > 0 {
		t.Errorf("a node that there was got the taints %v", there.Spec.Taints)
	}
	if got := (Registration{}).Object("n"); got.Name != "n" || !maps.Equal(got.Labels, Labels("n")) ||
		got.Spec.Taints != nil {
		t.Errorf("without any: %+v", got)
	}
}
