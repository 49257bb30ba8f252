// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// TestJobObjects proves WL-01 and WL-03 on a Job: its selector and its pods' labels come by themselves, what it must
// not ask for is refused by field, its template stays while it runs, and a deletion that does not say so sets its pods
// free and warns of it.
func TestJobObjects(t *testing.T) {
	said := &warned{}
	config := adminConfig(t)
	config.WarningHandler = said
	c := clientOf(t, config)
	ns := namespace(t, c)
	all := c.BatchV1().Jobs(ns)
	made, err := all.Create(t.Context(), job("j"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if by := made.Spec.Template.Labels[batchv1.ControllerUidLabel]; by != string(made.UID) ||
		made.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] != by ||
		made.Spec.Template.Labels[batchv1.JobNameLabel] != "j" {
		t.Errorf("labels and selector: %+v", made.Spec)
	}
	if *made.Spec.Completions != 1 || *made.Spec.Parallelism != 1 || *made.Spec.BackoffLimit != 6 ||
		*made.Spec.CompletionMode != batchv1.NonIndexedCompletion || *made.Spec.Suspend ||
		*made.Spec.PodReplacementPolicy != batchv1.TerminatingOrFailed {
		t.Errorf("defaults: %+v", made.Spec)
	}
	for field, change := range map[string]func(*batchv1.Job){
		"spec.template.spec.restartPolicy": func(j *batchv1.Job) {
			j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
		},
		"spec.completions": func(j *batchv1.Job) {
			j.Spec.CompletionMode, j.Spec.Parallelism = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](2)
		},
		"spec.backoffLimitPerIndex": func(j *batchv1.Job) { j.Spec.BackoffLimitPerIndex = ptr.To[int32](1) },
		"spec.selector": func(j *batchv1.Job) {
			j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		},
	} {
		bad := job("bad")
		change(bad)
		if _, err := all.Create(t.Context(), bad, metav1.CreateOptions{}); !apierrors.IsInvalid(err) ||
			!strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	made.Spec.Template.Spec.Containers[0].Image = "example.com/other"
	if _, err := all.Update(t.Context(), made, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "spec.template: Invalid value") {
		t.Errorf("another template: %v", err)
	}
	list, err := all.List(t.Context(), metav1.ListOptions{FieldSelector: "status.successful=0"})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("by field: %v, %v", list, err)
	}
	if err := all.Delete(t.Context(), "j", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if want := "child pods are preserved by default when jobs are deleted"; !said.has(want) {
		t.Errorf("no warning %q", want)
	}
	left, err := all.Get(t.Context(), "j", metav1.GetOptions{})
	if err != nil || len(left.Finalizers) != 1 || left.Finalizers[0] != metav1.FinalizerOrphanDependents {
		t.Errorf("it waits for its pods to be set free: %v, %v", left.Finalizers, err)
	}
}

// TestCronJobObjects proves WL-01 and WL-03 on a CronJob: its defaults, and what is refused of its times.
func TestCronJobObjects(t *testing.T) {
	c := client(t)
	all := c.BatchV1().CronJobs(namespace(t, c))
	cron := func(name, schedule string, zone *string) *batchv1.CronJob {
		return &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.CronJobSpec{Schedule: schedule,
			TimeZone: zone, JobTemplate: batchv1.JobTemplateSpec{Spec: job(name).Spec}}}
	}
	made, err := all.Create(t.Context(), cron("c", "*/5 * * * *", ptr.To("Europe/Berlin")), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made.Spec.ConcurrencyPolicy != batchv1.AllowConcurrent || *made.Spec.SuccessfulJobsHistoryLimit != 3 ||
		*made.Spec.FailedJobsHistoryLimit != 1 || *made.Spec.Suspend {
		t.Errorf("defaults: %+v", made.Spec)
	}
	for _, row := range []struct {
		bad  *batchv1.CronJob
		says string
	}{
		{cron("x", "every day", nil), "spec.schedule: Invalid value"},
		{cron("x", "TZ=Europe/Berlin 0 0 * * *", nil), "use timeZone field instead"},
		{cron("x", "@daily", ptr.To("Europe/Atlantis")), "unknown time zone Europe/Atlantis"},
	} {
		if _, err := all.Create(t.Context(), row.bad, metav1.CreateOptions{}); !apierrors.IsInvalid(err) ||
			!strings.Contains(err.Error(), row.says) {
			t.Errorf("%q in %v: %v", row.bad.Spec.Schedule, row.bad.Spec.TimeZone, err)
		}
	}
}

// TestReplicationControllerObjects proves WL-01 and WL-02 on a ReplicationController, which is of the core group, whose
// other kinds have rules of their own: its selector is its template's labels, and it has status and scale.
func TestReplicationControllerObjects(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	newQuota(t, c, ns, hard("replicationcontrollers", "1"))
	waitUsed(t, c, ns, "replicationcontrollers", "0")
	all := c.CoreV1().ReplicationControllers(ns)
	made, err := all.Create(t.Context(), replicationController("rc"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if *made.Spec.Replicas != 1 || made.Spec.Selector["app"] != "sample" || made.Labels["app"] != "sample" ||
		made.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyAlways || made.Generation != 1 {
		t.Errorf("defaults: %+v", made)
	}
	if _, err := all.Create(t.Context(), replicationController("second"),
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "exceeded quota") {
		t.Errorf("more than the quota allows: %v", err)
	}
	made.Status.Replicas, made.Status.ObservedGeneration = 1, 1
	made.Spec.Replicas = ptr.To[int32](9)
	reported, err := all.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	if err != nil || reported.Status.Replicas != 1 || *reported.Spec.Replicas != 1 {
		t.Errorf("status: %+v, %v", reported, err)
	}
	scale, err := all.UpdateScale(t.Context(), "rc", &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "rc", Namespace: ns}, Spec: autoscalingv1.ScaleSpec{Replicas: 3}},
		metav1.UpdateOptions{})
	if err != nil || scale.Spec.Replicas != 3 || scale.Status.Replicas != 1 || scale.Status.Selector != "app=sample" {
		t.Fatalf("scale: %+v, %v", scale, err)
	}
	list, err := all.List(t.Context(), metav1.ListOptions{FieldSelector: "status.replicas=1"})
	if err != nil || len(list.Items) != 1 || *list.Items[0].Spec.Replicas != 3 {
		t.Errorf("by field: %v, %v", list, err)
	}
	if _, err := all.Patch(t.Context(), "rc", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"A","value":"b"}]}]}}}}`),
		metav1.PatchOptions{}); err != nil {
		t.Errorf("patch of its template: %v", err)
	}
}
