// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherryproject/wherry/internal/podspec"
)

func podPrinter() Printer {
	spec, status := corev1.PodSpec{}.SwaggerDoc(), corev1.PodStatus{}.SwaggerDoc()
	return Printer{
		Columns: columns(
			nameColumn(),
			text("Ready", "The aggregate readiness state of this pod for accepting traffic."),
			text("Status", "The aggregate status of the containers in this pod."),
			text("Restarts",
				"The number of times the containers in this pod have been restarted and when the last container in this pod has restarted."),
			ageColumn(),
			wideText("IP", status["podIP"]),
			wideText("Node", spec["nodeName"]),
			wideText("Nominated Node", status["nominatedNodeName"]),
			wideText("Readiness Gates", spec["readinessGates"]),
		),
		Row:        rowOf(podRow),
		Conditions: podRowConditions,
	}
}

func podRow(pod *corev1.Pod, now time.Time) []any {
	sum := summarise(pod)
	return []any{
		pod.Name,
		fmt.Sprintf("%d/%d", sum.ready, sum.total),
		sum.status,
		sum.restartText(now),
		age(pod.CreationTimestamp, now),
		podIP(pod),
		orElse(pod.Spec.NodeName, none),
		orElse(pod.Status.NominatedNodeName, none),
		readinessGates(pod),
	}
}

func podIP(pod *corev1.Pod) string {
	if len(pod.Status.PodIPs) > 0 {
		return orElse(pod.Status.PodIPs[0].IP, none)
	}
	return orElse(pod.Status.PodIP, none)
}

// readinessGates is "those that are true / those there are".
func readinessGates(pod *corev1.Pod) string {
	if len(pod.Spec.ReadinessGates) == 0 {
		return none
	}
	open := 0
	for _, gate := range pod.Spec.ReadinessGates {
		if podspec.IsTrue(&pod.Status, gate.ConditionType) {
			open++
		}
	}
	return fmt.Sprintf("%d/%d", open, len(pod.Spec.ReadinessGates))
}

// podRowConditions marks the rows of pods that have ended.
func podRowConditions(obj runtime.Object) []metav1.TableRowCondition {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	var message string
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		message = "The pod has completed successfully."
	case corev1.PodFailed:
		message = "The pod failed."
	default:
		return nil
	}
	return []metav1.TableRowCondition{{
		Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: string(pod.Status.Phase), Message: message,
	}}
}
