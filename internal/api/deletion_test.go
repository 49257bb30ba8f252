// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const gone = -1

// PL-10 Deletion: which pods go at once, which wait for their node, and how long.
func TestGracefulDeletion(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	for _, test := range []struct {
		name    string
		bound   bool
		phase   corev1.PodPhase
		spec    *int64   // terminationGracePeriodSeconds
		deletes []*int64 // grace of each delete in turn; nil: none given
		want    int64    // deletionGracePeriodSeconds afterwards, or gone
	}{
		{"PL-10 unscheduled goes at once", false, "", nil, []*int64{nil}, gone},
		{"PL-10 scheduled waits the default", true, "", nil, []*int64{nil}, 30},
		{"PL-10 scheduled waits what the pod says", true, "", ptr.To[int64](7), []*int64{nil}, 7},
		{"PL-10 the delete's grace counts more", true, "", ptr.To[int64](7), []*int64{ptr.To[int64](90)}, 90},
		{"PL-10 force", true, "", nil, []*int64{ptr.To[int64](0)}, gone},
		{"PL-10 negative grace is one second", true, "", nil, []*int64{ptr.To[int64](-5)}, 1},
		{"PL-10 succeeded goes at once", true, corev1.PodSucceeded, nil, []*int64{nil}, gone},
		{"PL-10 failed goes at once", true, corev1.PodFailed, nil, []*int64{ptr.To[int64](60)}, gone},
		{"PL-10 running waits", true, corev1.PodRunning, nil, []*int64{nil}, 30},
		{"PL-10 second delete shortens", true, "", nil, []*int64{nil, ptr.To[int64](5)}, 5},
		{"PL-10 second delete does not lengthen", true, "", nil, []*int64{ptr.To[int64](5), ptr.To[int64](60)}, 5},
		{"PL-10 second delete without grace changes nothing", true, "", nil, []*int64{nil, nil}, 30},
		{"PL-10 force after graceful", true, "", nil, []*int64{nil, ptr.To[int64](0)}, gone},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := pod("p")
			p.Spec.TerminationGracePeriodSeconds = test.spec
			if test.bound {
				p = boundPod(t, c, ns, p)
			} else {
				p = createPod(t, c, ns, p)
			}
			pods := c.CoreV1().Pods(ns)
			t.Cleanup(func() {
				_ = c.CoreV1().Pods(ns).Delete(t.Context(), "p",
					metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
			})
			defer pods.Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
			if test.phase != "" {
				p.Status.Phase = test.phase
				var err error
				if p, err = pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			for _, grace := range test.deletes {
				if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: grace}); err != nil {
					t.Fatal(err)
				}
			}
			got, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
			if test.want == gone {
				if !apierrors.IsNotFound(err) {
					t.Errorf("it is still there: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.DeletionTimestamp == nil || ptr.Deref(got.DeletionGracePeriodSeconds, -2) != test.want {
				t.Fatalf("deletion %v, grace %v; want %d", got.DeletionTimestamp, got.DeletionGracePeriodSeconds,
					test.want)
			}
			if left := time.Until(got.DeletionTimestamp.Time); left > time.Duration(test.want)*time.Second {
				t.Errorf("deadline in %v", left)
			}
			if got.Generation != p.Generation+1 {
				t.Errorf("generation %d after the mark, was %d", got.Generation, p.Generation)
			}
		})
	}
}

// PL-10 Finalizers hold an object back until they are removed; preconditions refuse the wrong object.
func TestFinalizersAndPreconditions(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	pods := c.CoreV1().Pods(ns)
	held := pod("held")
	held.Finalizers = []string{"example.com/wait"}
	p := createPod(t, c, ns, held)
	stale := p.ResourceVersion
	if err := pods.Delete(t.Context(), "held",
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("x"))}}); !apierrors.IsConflict(err) {
		t.Errorf("another uid: %v", err)
	}
	if _, err := pods.Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(t.Context(), "held",
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &stale}}); !apierrors.IsConflict(err) {
		t.Errorf("another version: %v", err)
	}
	if err := pods.Delete(t.Context(), "held", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := pods.Get(t.Context(), "held", metav1.GetOptions{})
	if err != nil || got.DeletionTimestamp == nil {
		t.Fatalf("a held pod: %v, %v", got, err)
	}
	if _, err := pods.Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Get(t.Context(), "held", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the last finalizer: %v", err)
	}
}

// WL-04 How a deletion is to propagate is left as a finalizer to the garbage collector, which does not run here.
func TestPropagation(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	cms := c.CoreV1().ConfigMaps(ns)
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground,
		metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground} {
		t.Run(string(policy), func(t *testing.T) {
			owner, err := cms.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}},
				metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "of-" + strings.ToLower(string(policy)),
				OwnerReferences: []metav1.OwnerReference{
					{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}}}
			if _, err := cms.Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := cms.Delete(t.Context(), "owner", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
				t.Fatal(err)
			}
			left, err := cms.Get(t.Context(), "owner", metav1.GetOptions{})
			finalizer := map[metav1.DeletionPropagation]string{
				metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents,
				metav1.DeletePropagationOrphan:     metav1.FinalizerOrphanDependents,
			}[policy]
			switch {
			case finalizer == "" && !apierrors.IsNotFound(err):
				t.Errorf("the owner is still there: %v", err)
			case finalizer != "" && (err != nil || !slices.Equal(left.Finalizers, []string{finalizer})):
				t.Errorf("the owner has %v, %v, not %s", left.Finalizers, err, finalizer)
			case finalizer != "":
				if _, err := cms.Patch(t.Context(), "owner", types.MergePatchType,
					[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := cms.Get(t.Context(), owned.Name, metav1.GetOptions{}); err != nil {
				t.Errorf("what it owned is not: %v", err)
			}
		})
	}
	bad := metav1.DeletionPropagation("Sideways")
	if err := cms.Delete(t.Context(), "of-orphan",
		metav1.DeleteOptions{PropagationPolicy: &bad}); !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		t.Errorf("an unknown policy: %v", err)
	}
}

// PL-10 A collection of pods is deleted with each pod's own grace, and only what the selector means.
func TestDeleteCollectionOfPods(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	boundPod(t, c, ns, pod("bound"))
	createPod(t, c, ns, pod("pending"))
	kept := pod("kept")
	kept.Labels = map[string]string{"keep": "yes"}
	createPod(t, c, ns, kept)
	if err := c.CoreV1().Pods(ns).DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "!keep"}); err != nil {
		t.Fatal(err)
	}
	list, err := c.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	state := map[string]bool{}
	for _, p := range list.Items {
		state[p.Name] = p.DeletionTimestamp != nil
	}
	if len(state) != 2 || !state["bound"] || state["kept"] {
		t.Errorf("left, and whether terminating: %v", state)
	}
}

// PL-10 An eviction deletes the pod, marks it as disrupted, and heeds preconditions and dry run.
func TestEviction(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	p := boundPod(t, c, ns, pod("victim"))
	evict := func(o *metav1.DeleteOptions) error {
		return c.PolicyV1().Evictions(ns).Evict(t.Context(),
			&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "victim", Namespace: ns}, DeleteOptions: o})
	}
	if err := evict(&metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")}); !apierrors.IsConflict(err) {
		t.Errorf("another uid: %v", err)
	}
	if err := evict(&metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("dry run: %v", err)
	}
	if got, err := c.CoreV1().Pods(ns).Get(t.Context(), "victim", metav1.GetOptions{}); err != nil ||
		got.DeletionTimestamp != nil || got.ResourceVersion != p.ResourceVersion {
		t.Errorf("the dry run changed the pod: %v, %v", got, err)
	}
	if err := evict(&metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](11)}); err != nil {
		t.Fatal(err)
	}
	got, err := c.CoreV1().Pods(ns).Get(t.Context(), "victim", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.DeletionTimestamp == nil || ptr.Deref(got.DeletionGracePeriodSeconds, 0) != 11 {
		t.Errorf("deletion %v, grace %v", got.DeletionTimestamp, got.DeletionGracePeriodSeconds)
	}
	found := false
	for _, cond := range got.Status.Conditions {
		found = found || cond.Type == corev1.DisruptionTarget && cond.Status == corev1.ConditionTrue &&
			cond.Reason == "EvictionByEvictionAPI"
	}
	if !found {
		t.Errorf("conditions: %v", got.Status.Conditions)
	}
	err = c.PolicyV1().Evictions(ns).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "nobody",
		Namespace: ns}})
	if !apierrors.IsNotFound(err) {
		t.Errorf("eviction of no pod: %v", err)
	}
}
