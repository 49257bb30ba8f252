// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// KeepResize takes from pod, which somebody sent to pods/resize, only what that is about, and all else from old:
// resources and resize policies of containers, and the resources of the pod as a whole. Containers that were renamed,
// moved, added or removed stay as they were sent, for [ValidateResize] to refuse.
func KeepResize(pod, old *corev1.Pod) {
	asked := pod.Spec
	if len(asked.Containers) != len(old.Spec.Containers) || len(asked.InitContainers) != len(old.Spec.InitContainers) {
		return
	}
	version, uid, fields := pod.ResourceVersion, pod.UID, pod.ManagedFields
	old.DeepCopyInto(pod)
	pod.ResourceVersion, pod.UID, pod.ManagedFields = version, uid, fields
	pod.Spec.InitContainers = resized(asked.InitContainers, pod.Spec.InitContainers)
	pod.Spec.Containers = resized(asked.Containers, pod.Spec.Containers)
	if asked.Resources != nil { // a client that knows nothing of them leaves them out
		pod.Spec.Resources = asked.Resources
	}
	DefaultPodResources(pod)
}

func resized(asked, old []corev1.Container) []corev1.Container {
	for i := range asked {
		if asked[i].Name != old[i].Name {
			return asked
		}
	}
	for i := range asked {
		old[i].Resources, old[i].ResizePolicy = asked[i].Resources, asked[i].ResizePolicy
	}
	return old
}

// ValidateResize says what is wrong with an update through pods/resize (PL-14, PL-23): CPU and memory of containers and
// of the pod as a whole may be changed and added, not taken away, and the QoS class must stay.
func ValidateResize(newPod, oldPod *corev1.Pod) field.ErrorList {
	spec := field.NewPath("spec")
	if _, static := oldPod.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return errs{field.Forbidden(field.NewPath(""), "static pods cannot be resized")}
	}
	if os := oldPod.Spec.OS; os != nil && os.Name == corev1.Windows {
		return errs{field.Forbidden(field.NewPath(""), "windows pods cannot be resized")}
	}
	all := apivalidation.ValidateObjectMetaUpdate(&newPod.ObjectMeta, &oldPod.ObjectMeta, field.NewPath("metadata"))
	all = append(all, newFaults(newPod, oldPod)...)
	was := oldPod.Status.QOSClass
	if was == "" {
		was = QOSClass(oldPod)
	}
	if was != QOSClass(newPod) {
		all = append(all, field.Invalid(spec, newPod.Status.QOSClass,
			"Pod QOS Class may not change as a result of resizing"))
	}
	if !resizable(&oldPod.Status) {
		all = append(all, field.Forbidden(spec, "Pod running on node without support for resize"))
	}
	rest := newPod.Spec.DeepCopy()
	all = append(all, wholeResize(rest, newPod.Spec.Resources, oldPod.Spec.Resources, spec)...)
	if moved := movedContainers(newPod, oldPod, spec); len(moved) > 0 {
		return append(all, moved...)
	}
	all = append(all, containersResize(rest.InitContainers, newPod.Spec.InitContainers, oldPod.Spec.InitContainers,
		spec.Child("initContainers"), func(at *field.Path) errs {
			return errs{field.Forbidden(at, "only cpu and memory resources for init or sidecar containers are mutable")}
		})...)
	all = append(all, containersResize(rest.Containers, newPod.Spec.Containers, oldPod.Spec.Containers,
		spec.Child("containers"), func(*field.Path) errs { return errs{field.Forbidden(spec, onlyCompute)} })...)
	if len(all) > 0 {
		return all
	}
	return unchanged(spec, rest, &oldPod.Spec, onlyCompute)
}

const onlyCompute = "only cpu and memory resources are mutable"

// resizable reports whether the node that runs the pod can resize it: one that can reports the resources of what it
// runs.
func resizable(s *corev1.PodStatus) bool {
	i := slices.IndexFunc(s.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running != nil })
	return i < 0 || s.ContainerStatuses[i].Resources != nil
}

// wholeResize looks at the resources of the pod as a whole, and gives rest the old CPU and memory.
func wholeResize(rest *corev1.PodSpec, now, was *corev1.ResourceRequirements, spec *field.Path) (all errs) {
	if now == nil && was == nil {
		return nil
	}
	path := spec.Child("resources")
	if now == nil {
		return errs{field.Forbidden(path, "pod-level resources cannot be removed")}
	}
	old := corev1.ResourceRequirements{}
	if was != nil {
		old = *was
		if removed(now.Requests, old.Requests) {
			all = append(all, field.Forbidden(path.Child("requests"), "pod-level resource requests cannot be removed"))
		}
		if removed(now.Limits, old.Limits) {
			all = append(all, field.Forbidden(path.Child("limits"), "pod-level resource limits cannot be removed"))
		}
	}
	takeCompute(rest.Resources, &old)
	if r := rest.Resources; was == nil && len(r.Requests)+len(r.Limits)+len(r.Claims) == 0 {
		rest.Resources = nil
	}
	if !equality.Semantic.DeepEqual(rest.Resources, was) {
		all = append(all, field.Forbidden(spec, "only cpu and memory resources are mutable at pod-level"))
	}
	return all
}

// containersResize looks at the resources of one list of containers, and gives rest the old CPU and memory.
func containersResize(rest, now, was []corev1.Container, path *field.Path, other func(*field.Path) errs) (all errs) {
	for i := range was {
		at := path.Index(i)
		if removed(now[i].Resources.Requests, was[i].Resources.Requests) {
			all = append(all, field.Forbidden(at.Child("resources", "requests"), "resource requests cannot be removed"))
		}
		if removed(now[i].Resources.Limits, was[i].Resources.Limits) {
			all = append(all, field.Forbidden(at.Child("resources", "limits"), "resource limits cannot be removed"))
		}
	}
	for i := range was {
		takeCompute(&rest[i].Resources, &was[i].Resources)
		if !equality.Semantic.DeepEqual(rest[i], was[i]) {
			all = append(all, other(path.Index(i))...)
		}
	}
	return all
}

// removed reports whether was names a resource that now does not.
func removed(now, was corev1.ResourceList) bool {
	for name := range was {
		if _, ok := now[name]; !ok {
			return true
		}
	}
	return false
}

// takeCompute gives r the CPU and memory of old.
func takeCompute(r, old *corev1.ResourceRequirements) {
	take := func(list *corev1.ResourceList, from corev1.ResourceList) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			delete(*list, name)
			if q, ok := from[name]; ok {
				if *list == nil {
					*list = corev1.ResourceList{}
				}
				(*list)[name] = q
			}
		}
	}
	take(&r.Requests, old.Requests)
	take(&r.Limits, old.Limits)
}

// movedContainers: a resize is of the containers that are there, in their order.
func movedContainers(newPod, oldPod *corev1.Pod, spec *field.Path) (all errs) {
	for _, l := range []struct {
		name     string
		now, was []corev1.Container
	}{{"containers", newPod.Spec.Containers, oldPod.Spec.Containers},
		{"initContainers", newPod.Spec.InitContainers, oldPod.Spec.InitContainers}} {
		path := spec.Child(l.name)
		if len(l.now) != len(l.was) {
			all = append(all, field.Forbidden(path, fmt.Sprintf("%s may not be added or removed on resize", l.name)))
			continue
		}
		for i := range l.was {
			if l.now[i].Name != l.was[i].Name {
				all = append(all, field.Forbidden(path.Index(i).Child("name"),
					fmt.Sprintf("%s may not be renamed or reordered on resize", l.name)))
			}
		}
	}
	return all
}
