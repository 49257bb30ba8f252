// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/podstore"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/features"
	"github.com/wherryproject/wherry/internal/podspec"
)

func podRules(gates *features.Gates) registry.Rules {
	return registry.Typed[*corev1.Pod]{
		Drop: func(pod, old *corev1.Pod) []string {
			return append(gates.Drop(pod, old), podstore.DropOwn(pod, old)...)
		},
		PrepareCreate: func(pod *corev1.Pod) {
			podspec.DefaultPodResources(pod)
			podspec.FormerAppArmor(pod)
			pod.Generation = 1
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: podspec.QOSClass(pod)}
			if len(pod.Spec.SchedulingGates) > 0 {
				pod.Status.Conditions = []corev1.PodCondition{{
					Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
					Reason:             corev1.PodReasonSchedulingGated,
					Message:            "Scheduling is blocked due to non-empty scheduling gates",
					LastTransitionTime: metav1.Now(),
					ObservedGeneration: pod.Generation,
				}}
			}
		},
		Validate: func(pod *corev1.Pod) field.ErrorList {
			return append(podspec.Validate(pod), podspec.Unsupported(pod)...)
		},
		PrepareUpdate: func(pod, old *corev1.Pod) {
			pod.Status = old.Status
			podspec.TakeAnnotation(pod, old, podspec.AddedAnnotation)
			if !equality.Semantic.DeepEqual(pod.Spec, old.Spec) {
				pod.Generation++
			}
		},
		ValidateUpdate: podspec.ValidateUpdate,
		Grace:          podGrace,
		Warn:           podWarnings,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.Rules()
}

func podStatusRules() registry.Rules {
	return registry.Typed[*corev1.Pod]{
		PrepareUpdate: func(pod, old *corev1.Pod) {
			pod.Spec = old.Spec
			pod.DeletionTimestamp = nil // the library puts the stored one back
			pod.OwnerReferences = old.OwnerReferences
			podstore.KeepOwn(pod, old)
			if pod.Status.QOSClass == "" {
				pod.Status.QOSClass = old.Status.QOSClass
			}
		},
		ValidateUpdate: podspec.ValidateStatusUpdate,
		Reset: fieldpath.NewSet(
			fieldpath.MakePathOrDie("spec"),
			fieldpath.MakePathOrDie("metadata", "deletionTimestamp"),
			fieldpath.MakePathOrDie("metadata", "ownerReferences"),
		),
	}.Rules()
}

// PodEphemeralRules are those of pods/ephemeralcontainers: entries are added, and nothing else changes, whatever the
// rest of the request says (EC-03, EC-04).
func PodEphemeralRules() registry.Rules {
	return registry.Typed[*corev1.Pod]{
		PrepareUpdate: func(pod, old *corev1.Pod) {
			asked, version, uid := pod.Spec.EphemeralContainers, pod.ResourceVersion, pod.UID
			fields := pod.ManagedFields
			old.DeepCopyInto(pod)
			pod.Spec.EphemeralContainers = asked
			pod.ResourceVersion, pod.UID, pod.ManagedFields = version, uid, fields
			podspec.SetDefaults(pod)
			if !equality.Semantic.DeepEqual(pod.Spec, old.Spec) {
				pod.Generation++
			}
		},
		ValidateUpdate: func(pod, old *corev1.Pod) field.ErrorList {
			return append(podspec.ValidateEphemeralContainersUpdate(pod, old), podspec.Unsupported(pod)...)
		},
		Reset: fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.Rules()
}

// podGrace gives a pod that runs the time it asked for, and none to one that no node has or that has ended.
func podGrace(pod *corev1.Pod, options *metav1.DeleteOptions) bool {
	if options == nil {
		return false
	}
	var seconds int64
	switch {
	case pod.Spec.NodeName == "", pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		// nothing to wait for
	case options.GracePeriodSeconds != nil:
		seconds = *options.GracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	if seconds < 0 {
		seconds = 1
	}
	seconds = min(seconds, podspec.MostSeconds) // the library adds it to the time: more would have been over long ago
	options.GracePeriodSeconds = &seconds
	return true
}

func podFields(obj runtime.Object) fields.Set {
	pod := obj.(*corev1.Pod)
	set := fields.Set{
		"spec.nodeName":            pod.Spec.NodeName,
		"spec.restartPolicy":       string(pod.Spec.RestartPolicy),
		"spec.schedulerName":       pod.Spec.SchedulerName,
		"spec.serviceAccountName":  pod.Spec.ServiceAccountName,
		"spec.hostNetwork":         strconv.FormatBool(pod.Spec.HostNetwork),
		"status.phase":             string(pod.Status.Phase),
		"status.podIP":             pod.Status.PodIP,
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
	}
	if len(pod.Status.PodIPs) > 0 {
		set["status.podIP"] = pod.Status.PodIPs[0].IP
	}
	set["status.podIPs"] = set["status.podIP"]
	return set
}
