// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/podspec"
)

// EC-03 EC-04 EC-07 EC-08 Ephemeral containers are added through their subresource, by PATCH and PUT, and by nothing
// else; what is there stays as it is, and the rest of the pod too.
func TestEphemeralContainers(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	p := boundPod(t, c, ns, pod("p"))
	pods := c.CoreV1().Pods(ns)
	patch := `{"metadata":{"labels":{"sneaked":"in"}},"spec":{"ephemeralContainers":[{"name":"one","image":"tools:1","targetContainerName":"` + p.Spec.Containers[0].Name + `"}]}}`
	got, err := pods.Patch(t.Context(), "p", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{},
		"ephemeralcontainers")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Spec.EphemeralContainers) != 1 || got.Spec.EphemeralContainers[0].TerminationMessagePath == "" {
		t.Errorf("after the patch: %+v", got.Spec.EphemeralContainers)
	}
	if got.Labels["sneaked"] != "" || got.Generation != p.Generation+1 {
		t.Errorf("labels %v, generation %d after %d", got.Labels, got.Generation, p.Generation)
	}
	more := got.DeepCopy()
	more.Spec.EphemeralContainers = append(more.Spec.EphemeralContainers,
		corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "two",
			Image: "tools:1"}})
	if got, err = pods.UpdateEphemeralContainers(t.Context(), "p", more, metav1.UpdateOptions{}); err != nil ||
		len(got.Spec.EphemeralContainers) != 2 {
		t.Fatalf("PUT: %v, %+v", err, got.Spec.EphemeralContainers)
	}
	if _, err := pods.UpdateEphemeralContainers(t.Context(), "p", more,
		metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("PUT of an older version: %v", err)
	}
	for name, change := range map[string]func(*corev1.Pod){
		"may not be removed": func(p *corev1.Pod) { p.Spec.EphemeralContainers = p.Spec.EphemeralContainers[:1] },
		"may not be changed": func(p *corev1.Pod) { p.Spec.EphemeralContainers[0].Image = "other:1" },
		"targetContainerName": func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers,
				corev1.EphemeralContainer{TargetContainerName: "nobody",
					EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "three", Image: "tools:1"}})
		},
	} {
		bad := got.DeepCopy()
		change(bad)
		if _, err := pods.UpdateEphemeralContainers(t.Context(), "p", bad,
			metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	plain := got.DeepCopy()
	plain.Spec.EphemeralContainers = nil
	if _, err := pods.Update(t.Context(), plain, metav1.UpdateOptions{}); err == nil {
		t.Error("an ordinary update took ephemeral containers away")
	}
}

// DC-05 IX-08 ATTACK A39: who added a debug container, and when, is in fields that no client can write, and that no
// client needs to know of.
func TestWhoAddedADebugContainer(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	pods := c.CoreV1().Pods(ns)
	forged := `{"one":{"by":"nobody","at":"2001-01-01T00:00:00Z"}}`
	born := pod("p")
	born.Annotations = map[string]string{podspec.AddedAnnotation: forged, "mine": "stays"}
	p := boundPod(t, c, ns, born)
	if _, has := p.Annotations[podspec.AddedAnnotation]; has || p.Annotations["mine"] != "stays" {
		t.Errorf("a new pod has %v", p.Annotations)
	}
	before := time.Now().Truncate(time.Second)
	patch := `{"metadata":{"annotations":{"` + podspec.AddedAnnotation + `":"{}"}},
		"spec":{"ephemeralContainers":[{"name":"one","image":"tools:1"},{"name":"two","image":"tools:1"}]}}`
	got, err := pods.Patch(t.Context(), "p", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{},
		"ephemeralcontainers")
	if err != nil {
		t.Fatal(err)
	}
	check := func(way string, p *corev1.Pod) {
		t.Helper()
		all := podspec.DebugAdditionsOf(p)
		for _, name := range []string{"one", "two"} {
			if a := all[name]; a.By != "wherry-admin" || a.At.Time.Before(before) || a.At.After(time.Now()) {
				t.Errorf("%s: %s was added by %q at %s", way, name, a.By, a.At)
			}
		}
	}
	check("added", got)
	for way, change := range map[string]func(*corev1.Pod){
		"forged":    func(p *corev1.Pod) { p.Annotations[podspec.AddedAnnotation] = forged },
		"taken off": func(p *corev1.Pod) { delete(p.Annotations, podspec.AddedAnnotation) },
	} {
		for door, write := range map[string]func(*corev1.Pod) (*corev1.Pod, error){
			"update": func(p *corev1.Pod) (*corev1.Pod, error) {
				return pods.Update(t.Context(), p, metav1.UpdateOptions{})
			},
			"status": func(p *corev1.Pod) (*corev1.Pod, error) {
				return pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
			},
			"containers": func(p *corev1.Pod) (*corev1.Pod, error) {
				return pods.UpdateEphemeralContainers(t.Context(), "p", p, metav1.UpdateOptions{})
			},
		} {
			bad := podNow(t, c, ns, "p")
			change(bad)
			if got, err = write(bad); err != nil {
				t.Errorf("%s by %s: %v", way, door, err)
				continue
			}
			check(way+" by "+door, got)
		}
	}
}
