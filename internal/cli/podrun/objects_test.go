// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"
)

// A server that is slow to take the objects is not waited for beyond the timeout, and what it has taken goes.
func TestTimeoutWhileCreating(t *testing.T) {
	for _, dry := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.client.PrependReactor("create", "configmaps", func(a k8stesting.Action) (bool, runtime.Object, error) {
				if len(a.(k8stesting.CreateActionImpl).CreateOptions.DryRun) > 0 == dry {
					time.Sleep(30 * time.Second)
				}
				return false, nil, nil
			})
			w.expect(w.run(Options{Timeout: time.Second}, "{apiVersion: v1, kind: Secret, metadata: {name: s}}\n---\n"+
				"{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n---\n"+web), "124 not created after 1s")
			secrets, err := w.client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
			maps, err2 := w.client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
			if err := errors.Join(err, err2); err != nil || len(secrets.Items)+len(maps.Items)+w.pods() > 0 {
				t.Errorf("dry run %v: left %d secrets, %d config maps, %d pods, %v", dry, len(secrets.Items),
					len(maps.Items), w.pods(), err)
			}
		})
	}
}

// What is there already is judged before anything is changed, too.
func TestBadUpdateChangesNothing(t *testing.T) {
	in := metav1.ObjectMeta{Name: "app", Namespace: "default"}
	w := newWorld(t, &appsv1.Deployment{ObjectMeta: in}, &corev1.ConfigMap{ObjectMeta: in})
	w.client.PrependReactor("patch", "deployments", func(k8stesting.Action) (bool, runtime.Object, error) {
		err := apierrors.NewBadRequest("invalid")
		err.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "spec.selector",
			Message: "field is immutable"}}}
		return true, nil, err
	})
	w.expect(w.run(Options{}, "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {a: b}}\n---\n"+
		deploymentText),
		"125 f.yaml:2: spec.selector: field is immutable")
	m, err := w.client.CoreV1().ConfigMaps("default").Get(t.Context(), "app", metav1.GetOptions{})
	if err != nil || m.Data["a"] != "" {
		t.Errorf("the config map: %v, %v", m.Data, err)
	}
}

// An object that the manifests have twice is refused, with both places, and nothing is made.
func TestTwice(t *testing.T) {
	w := newWorld(t)
	config := "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}\n---\n"
	w.expect(w.run(Options{}, config+web+"---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: default}}\n---\n"+
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: other}}\n"),
		"125 f.yaml:4: configmap web is also at f.yaml:1: leave one of them out")
	maps, err := w.client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(maps.Items)+w.pods() > 0 {
		t.Errorf("made: %d config maps, %d pods, %v", len(maps.Items), w.pods(), err)
	}
}

// Two runs of one manifest at the same time: what the other one has just made is updated, and a pod is refused as one
// that was there before.
func TestAnotherRunIsQuicker(t *testing.T) {
	w := newWorld(t)
	w.client.PrependReactor("create", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
		c := a.(k8stesting.CreateActionImpl)
		if len(c.CreateOptions.DryRun) > 0 {
			return false, nil, nil
		}
		other := c.Object.DeepCopyObject()
		other.(metav1.Object).SetNamespace(c.Namespace)
		if err := w.client.Tracker().Create(c.Resource, other, c.Namespace); err != nil {
			t.Error(err)
		}
		return false, nil, nil
	})
	w.expect(w.run(Options{}, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}\n---\n"+web),
		"125 f.yaml:2: pod default/web already exists; delete it first")
	if _, err := w.client.CoreV1().ConfigMaps("default").Get(t.Context(), "c", metav1.GetOptions{}); err != nil {
		t.Errorf("the other run's config map: %v", err)
	}
	if said := w.err.String(); w.pods() != 1 || !strings.Contains(said, "configmap c updated") {
		t.Errorf("the other run's pod is gone, or: %s", said)
	}
}
