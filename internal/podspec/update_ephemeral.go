// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// ValidateEphemeralContainersUpdate says what is wrong with an update through pods/ephemeralcontainers:
// entries can be added, never changed or removed, and nothing else may change (EC-04); what an entry may
// say is EC-05 to EC-07; static pods have none (EC-09).
func ValidateEphemeralContainersUpdate(newPod, oldPod *corev1.Pod) field.ErrorList {
	return ephemeralUpdate(newPod, oldPod, "")
}

// ValidateDebugContainerUpdate says what is wrong with the update that makes debug container name: that of
// ValidateEphemeralContainersUpdate, but the entry may replace one of its name, and [DebugAnnotation] may
// change (DC-03, DC-06). That the replaced one has ended is for [AddDebugContainer] to see.
func ValidateDebugContainerUpdate(newPod, oldPod *corev1.Pod, name string) field.ErrorList {
	before := oldPod.DeepCopy()
	TakeAnnotation(before, newPod, DebugAnnotation)
	return append(ephemeralUpdate(newPod, before, name), validateDebugAnnotations(newPod,
		field.NewPath("metadata", "annotations"))...)
}

// TakeAnnotation gives pod another one's annotation, or none if that has none.
func TakeAnnotation(pod, from *corev1.Pod, key string) {
	text, ok := from.Annotations[key]
	if !ok {
		delete(pod.Annotations, key)
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[key] = text
}

// ephemeralUpdate: the entry called replaced may become another one, and [AddedAnnotation], which the server writes,
// may change.
func ephemeralUpdate(newPod, oldPod *corev1.Pod, replaced string) field.ErrorList {
	if newPod.Annotations[AddedAnnotation] != oldPod.Annotations[AddedAnnotation] {
		oldPod = oldPod.DeepCopy()
		TakeAnnotation(oldPod, newPod, AddedAnnotation)
	}
	all := apivalidation.ValidateObjectMetaUpdate(&newPod.ObjectMeta, &oldPod.ObjectMeta, field.NewPath("metadata"))
	spec := field.NewPath("spec")
	path := spec.Child("ephemeralContainers")
	if _, static := oldPod.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return append(all, field.Forbidden(path, "static pods do not support ephemeral containers"))
	}
	now := map[string]*corev1.EphemeralContainer{}
	for i := range newPod.Spec.EphemeralContainers {
		now[newPod.Spec.EphemeralContainers[i].Name] = &newPod.Spec.EphemeralContainers[i]
	}
	for i := range oldPod.Spec.EphemeralContainers {
		was := &oldPod.Spec.EphemeralContainers[i]
		is, ok := now[was.Name]
		switch {
		case !ok:
			all = append(all, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be removed",
				was.Name)))
		case was.Name != replaced && !equality.Semantic.DeepEqual(is, was):
			all = append(all, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be changed",
				was.Name)))
		}
	}
	all = append(all, newFaults(newPod, oldPod)...)
	all = append(all, longImages(newPod, oldPod, path)...)
	rest := newPod.Spec.DeepCopy()
	rest.EphemeralContainers = oldPod.Spec.EphemeralContainers
	all = append(all,
		unchanged(spec, rest, &oldPod.Spec,
			"only `spec.ephemeralContainers` may be changed through pods/ephemeralcontainers")...)
	return append(all, sameMeta(newPod, oldPod, "pods/ephemeralcontainers")...)
}

// longImages: who may add debug containers, and write nothing else, must not be able to fill the store with the records
// of them. Kubernetes keeps no records, and takes a name of any length.
func longImages(newPod, oldPod *corev1.Pod, path *field.Path) (all errs) {
	added := map[string]bool{}
	for _, c := range AddedEphemeral(newPod, oldPod) {
		added[c.Name] = true
	}
	for i, c := range newPod.Spec.EphemeralContainers {
		if added[c.Name] && len(c.Image) > debugask.MaxImage {
			all = append(all, field.TooLong(path.Index(i).Child("image"), "", debugask.MaxImage))
		}
	}
	return all
}

// sameMeta: a subresource that is about something else leaves the metadata that people write alone.
func sameMeta(newPod, oldPod *corev1.Pod, subresource string) (all errs) {
	words := "may not be changed through " + subresource
	for _, f := range []struct {
		name string
		same bool
	}{
		{"labels", equality.Semantic.DeepEqual(newPod.Labels, oldPod.Labels)},
		{"annotations", equality.Semantic.DeepEqual(newPod.Annotations, oldPod.Annotations)},
		{"finalizers", equality.Semantic.DeepEqual(newPod.Finalizers, oldPod.Finalizers)},
		{"ownerReferences", equality.Semantic.DeepEqual(newPod.OwnerReferences, oldPod.OwnerReferences)},
	} {
		if !f.same {
			all = append(all, field.Forbidden(field.NewPath("metadata", f.name), words))
		}
	}
	return all
}
