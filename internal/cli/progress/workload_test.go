// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

func TestWorkload(t *testing.T) {
	two := ptr.To[int32](2)
	seen := metav1.ObjectMeta{Generation: 2}
	job := func(s batchv1.JobStatus) *batchv1.Job {
		return &batchv1.Job{Spec: batchv1.JobSpec{Completions: two}, Status: s}
	}
	is := func(what batchv1.JobConditionType, reason, message string) []batchv1.JobCondition {
		return []batchv1.JobCondition{{Type: what, Status: corev1.ConditionTrue, Reason: reason, Message: message}}
	}
	for name, c := range map[string]struct {
		obj  runtime.Object
		want string
	}{
		"not seen": {&appsv1.Deployment{ObjectMeta: seen, Status: appsv1.DeploymentStatus{ObservedGeneration: 1,
			ReadyReplicas: 1, UpdatedReplicas: 1, Replicas: 1, AvailableReplicas: 1}}, ""},
		"an old pod is left": {&appsv1.Deployment{ObjectMeta: seen, Spec: appsv1.DeploymentSpec{Replicas: two},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 2, ReadyReplicas: 2, UpdatedReplicas: 2, Replicas: 3,
				AvailableReplicas: 2}}, "2 of 2 ready"},
		"ready": {&appsv1.Deployment{ObjectMeta: seen, Spec: appsv1.DeploymentSpec{Replicas: two},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 2, ReadyReplicas: 2, UpdatedReplicas: 2, Replicas: 2,
				AvailableReplicas: 2}}, "2 of 2 ready; ready"},
		"forbidden": {&appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate",
			Message: "exceeded quota"}}}}, "0 of 1 ready; trouble FailedCreate: exceeded quota"},
		"replica set": {&appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: two},
			Status: appsv1.ReplicaSetStatus{ReadyReplicas: 1}}, "1 of 2 ready"},
		"replication controller": {&corev1.ReplicationController{Status: corev1.ReplicationControllerStatus{
			ReadyReplicas: 1}}, "1 of 1 ready; ready"},
		"stateful set, in the middle of an update": {&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: two},
			Status: appsv1.StatefulSetStatus{ReadyReplicas: 2, UpdatedReplicas: 1}}, "2 of 2 ready"},
		"stateful set, updated in part": {&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: two,
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{
				Partition: ptr.To[int32](1)}}}, Status: appsv1.StatefulSetStatus{ReadyReplicas: 2, UpdatedReplicas: 1}},
			"2 of 2 ready; ready"},
		"daemon set": {&appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1, NumberReady: 1,
			UpdatedNumberScheduled: 1}}, "1 of 1 ready; ready"},
		"job, begun":     {job(batchv1.JobStatus{Active: 2, Ready: ptr.To[int32](1)}), ""},
		"job, all begun": {job(batchv1.JobStatus{Active: 2, Ready: two}), "; ready"},
		"job, half": {job(batchv1.JobStatus{Active: 1, Succeeded: 1, Failed: 3}),
			"1 of 2 succeeded, 3 failed"},
		"job, complete": {job(batchv1.JobStatus{Succeeded: 2, Conditions: is(batchv1.JobComplete, "", "")}),
			"2 of 2 succeeded, complete; ended"},
		"job, failed": {job(batchv1.JobStatus{Failed: 1, Conditions: is(batchv1.JobFailed, "BackoffLimitExceeded",
			"too often")}),
			"0 of 2 succeeded, 1 failed; ended; failed; trouble failed: BackoffLimitExceeded: too often"},
		"job, suspended": {job(batchv1.JobStatus{Conditions: is(batchv1.JobSuspended, "", "")}), "suspended; ready"},
		"job, failing":   {job(batchv1.JobStatus{Conditions: is(batchv1.JobFailureTarget, "PodFailurePolicy", "")}), ""},
		"cron job": {&batchv1.CronJob{Spec: batchv1.CronJobSpec{Schedule: "@daily", TimeZone: ptr.To("Europe/Berlin")}},
			`runs at "@daily" in Europe/Berlin; ready`},
		"cron job, busy": {&batchv1.CronJob{Status: batchv1.CronJobStatus{Active: make([]corev1.ObjectReference, 2)}},
			"2 jobs active; ready"},
		"no workload": {&corev1.Secret{}, ""},
	} {
		s := Workload(c.obj)
		got := s.Text
		if s.Ready {
			got += "; ready"
		}
		if s.Ended {
			got += "; ended"
		}
		if s.Failed {
			got += "; failed"
		}
		if s.Trouble != "" {
			got += fmt.Sprintf("; trouble %s", s.Trouble)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
