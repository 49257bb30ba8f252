// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/manifest"
)

// workload is what makes pods, as the run created or updated it.
type workload struct {
	metav1.Object
	obj   runtime.Object
	gvk   schema.GroupVersionKind
	verbs verbs
	ours  bool // the run made it, and may remove it

	mu   sync.Mutex
	pods map[types.UID]*corev1.Pod // that it was seen to have, and that are not gone
}

func newWorkload(o manifest.Object, obj runtime.Object, m metav1.Object, v verbs, ours bool) *workload {
	return &workload{Object: m, obj: obj, gvk: o.GVK, verbs: v, ours: ours, pods: map[types.UID]*corev1.Pod{}}
}

// String is its kind and name, as kubectl writes them.
func (w *workload) String() string { return strings.ToLower(w.gvk.Kind) + "/" + w.GetName() }

// long names it with its namespace.
func (w *workload) long() string {
	return fmt.Sprintf("%s %s/%s", strings.ToLower(w.gvk.Kind), w.GetNamespace(), w.GetName())
}

func (w *workload) has(p *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods[p.UID] = p
}

func (w *workload) lost(p *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pods, p.UID)
}

// all are the pods that it was seen to have.
func (w *workload) all() (pods []*corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pods {
		pods = append(pods, p)
	}
	return pods
}

// deleteWorkloads begins to delete those that the run made. Each stays until its pods are gone.
func (r *Runner) deleteWorkloads(ctx context.Context, all []*workload) error {
	var errs []error
	for _, w := range all {
		if !w.ours {
			continue
		}
		err := w.verbs.delete(ctx, w.GetName(), metav1.DeleteOptions{
			PropagationPolicy: ptr.To(metav1.DeletePropagationForeground),
			Preconditions:     metav1.NewUIDPreconditions(string(w.GetUID())),
		})
		// conflict: another one of that name
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("delete %s: %w", w.long(), err))
		}
	}
	return errors.Join(errs...)
}

// leftWorkload says what can be done with a workload that is left.
func leftWorkload(w *workload) string {
	in := namespaceFlag(w.GetNamespace())
	return fmt.Sprintf("%s was not deleted: look at it (wherry kubectl describe%s %s), or delete it (wherry kubectl delete%s %s)",
		w.long(), in, w, in, w)
}
