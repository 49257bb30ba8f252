// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// jobOf is a Job whose pods are not started again.
func jobOf(name string, change func(*batchv1.JobSpec)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: "example.com/x"}}}}}}
	if change != nil {
		change(&j.Spec)
	}
	return j
}

// endPod has a pod say that it has ended, as its node would: exit is that of its container.
func endPod(t *testing.T, client kubernetes.Interface, p *corev1.Pod, exit int32) {
	t.Helper()
	status := corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{Name: "main",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exit,
			FinishedAt: metav1.Now()}}}}}
	if exit != 0 {
		status.Phase = corev1.PodFailed
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods(p.Namespace).Patch(t.Context(), p.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// podsAndJobs watches what is in a namespace from now on.
func podsAndJobs(t *testing.T, client kubernetes.Interface, ns string) (pods, jobs watch.Interface) {
	t.Helper()
	pods, err := client.CoreV1().Pods(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pods.Stop)
	jobs, err = client.BatchV1().Jobs(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(jobs.Stop)
	return pods, jobs
}

func jobIs(j *batchv1.Job, what batchv1.JobConditionType, reason string) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == what && c.Status == corev1.ConditionTrue && (reason == "" || c.Reason == reason)
	})
}

// TestJobCompletes: WL-03, WL-06, the first Job begins its controller, which makes its pods, counts each by a finalizer
// before the pod may go, and says when all are done. With a time to live it then goes with its pods (WL-04).
func TestJobCompletes(t *testing.T) {
	client := start(t)
	ns := newNamespace(t, client)
	leaveNothing(t, client, ns)
	m := startWorkloads(t, nil)
	if m.Started("job-controller") || m.Started("ttl-after-finished-controller") {
		t.Error("the controllers of Jobs run without any")
	}
	pods, jobs := podsAndJobs(t, client, ns)
	_, err := client.BatchV1().Jobs(ns).Create(t.Context(), jobOf("j", func(s *batchv1.JobSpec) {
		s.Completions, s.Parallelism = ptr.To[int32](2), ptr.To[int32](2)
		s.CompletionMode = ptr.To(batchv1.IndexedCompletion)
		s.TTLSecondsAfterFinished = ptr.To[int32](0)
	}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ended := map[string]bool{}
	until(t, pods, func(p *corev1.Pod) bool {
		if ended[p.Name] {
			return false
		}
		ended[p.Name] = true
		index := p.Annotations[batchv1.JobCompletionIndexAnnotation]
		if !slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) || p.Spec.Hostname != "j-"+index {
			t.Errorf("pod %s: finalizers %v, hostname %q", p.Name, p.Finalizers, p.Spec.Hostname)
		}
		// It is deleted before it was counted: it stays until then.
		if index == "0" {
			endPod(t, client, p, 0)
			if err := client.CoreV1().Pods(ns).Delete(t.Context(), p.Name,
				metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
				t.Error(err)
			}
			return len(ended) == 2
		}
		endPod(t, client, p, 0)
		return len(ended) == 2
	})
	until(t, jobs, func(j *batchv1.Job) bool {
		return jobIs(j, batchv1.JobComplete, "") && j.Status.Succeeded == 2 && j.Status.CompletedIndexes == "0,1"
	})
	if m.Started("cronjob-controller") {
		t.Error("a Job begins the controller of CronJobs")
	}
	wentFrom(t, jobs)
	wentFrom(t, pods) // the last of its pods
}

// wentFrom returns when a watch tells of a deletion.
func wentFrom(t *testing.T, w watch.Interface) {
	t.Helper()
	patience := time.After(30 * time.Second)
	for {
		select {
		case e := <-w.ResultChan():
			if e.Type == watch.Deleted {
				return
			}
		case <-patience:
			t.Fatal("it does not go")
		}
	}
}

// TestJobPolicies: WL-03, what a Job makes of failures: an exit code that its policy does not forgive fails it at once,
// one index may fail without the others, a disruption costs no retry, and a suspended one has no pods.
func TestJobPolicies(t *testing.T) {
	client := start(t)
	ns := newNamespace(t, client)
	leaveNothing(t, client, ns)
	startWorkloads(t, nil)
	create := func(name string, change func(*batchv1.JobSpec)) (pods, jobs watch.Interface) {
		t.Helper()
		pods, jobs = podsAndJobs(t, client, ns)
		if _, err := client.BatchV1().Jobs(ns).Create(t.Context(), jobOf(name, change), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return pods, jobs
	}
	onExit := func(code int32) *batchv1.PodFailurePolicyOnExitCodesRequirement {
		return &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn,
			Values: []int32{code}}
	}
	t.Run("an exit code fails it", func(t *testing.T) {
		pods, jobs := create("policy", func(s *batchv1.JobSpec) {
			s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
				{Action: batchv1.PodFailurePolicyActionFailJob, OnExitCodes: onExit(42)}}}
		})
		until(t, pods, func(p *corev1.Pod) bool { endPod(t, client, p, 42); return true })
		until(t, jobs, func(j *batchv1.Job) bool {
			return j.Name == "policy" && jobIs(j, batchv1.JobFailed, batchv1.JobReasonPodFailurePolicy)
		})
	})
	t.Run("an index fails alone", func(t *testing.T) {
		pods, jobs := create("indexed", func(s *batchv1.JobSpec) {
			s.Completions, s.Parallelism = ptr.To[int32](2), ptr.To[int32](2)
			s.CompletionMode, s.BackoffLimitPerIndex = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](0)
		})
		seen := map[string]bool{}
		until(t, pods, func(p *corev1.Pod) bool {
			if p.Labels[batchv1.JobNameLabel] == "indexed" && !seen[p.Name] {
				seen[p.Name] = true
				endPod(t, client, p, map[string]int32{"0": 1}[p.Annotations[batchv1.JobCompletionIndexAnnotation]])
			}
			return len(seen) == 2
		})
		until(t, jobs, func(j *batchv1.Job) bool {
			return j.Name == "indexed" && jobIs(j, batchv1.JobFailed, batchv1.JobReasonFailedIndexes) &&
				ptr.Deref(j.Status.FailedIndexes, "") == "0" && j.Status.CompletedIndexes == "1"
		})
	})
	t.Run("one index is enough", func(t *testing.T) {
		pods, jobs := create("enough", func(s *batchv1.JobSpec) {
			s.Completions, s.Parallelism = ptr.To[int32](2), ptr.To[int32](2)
			s.CompletionMode = ptr.To(batchv1.IndexedCompletion)
			s.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: ptr.To("0")}}}
		})
		until(t, pods, func(p *corev1.Pod) bool {
			if p.Labels[batchv1.JobNameLabel] != "enough" || p.Annotations[batchv1.JobCompletionIndexAnnotation] != "0" {
				return false
			}
			endPod(t, client, p, 0)
			return true
		})
		until(t, jobs, func(j *batchv1.Job) bool {
			return j.Name == "enough" && jobIs(j, batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
		})
	})
	t.Run("suspended", func(t *testing.T) {
		_, jobs := create("later", func(s *batchv1.JobSpec) { s.Suspend = ptr.To(true) })
		until(t, jobs, func(j *batchv1.Job) bool { return j.Name == "later" && jobIs(j, batchv1.JobSuspended, "") })
		list, err := client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "job-name=later"})
		if err != nil || len(list.Items) != 0 {
			t.Errorf("pods: %v, %v", list.Items, err)
		}
		pods, _ := podsAndJobs(t, client, ns)
		if _, err := client.BatchV1().Jobs(ns).Patch(t.Context(), "later", types.MergePatchType,
			[]byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		until(t, pods, func(p *corev1.Pod) bool { return p.Labels[batchv1.JobNameLabel] == "later" })
	})
}

// TestCronJobMakesJobs: WL-03, WL-06, the first CronJob begins its controller, which makes a Job for a time that has
// come, of which its status tells.
func TestCronJobMakesJobs(t *testing.T) {
	client := start(t)
	ns := newNamespace(t, client)
	leaveNothing(t, client, ns)
	m := startWorkloads(t, nil)
	if m.Started("cronjob-controller") {
		t.Error("the controller of CronJobs runs without any")
	}
	all := client.BatchV1().CronJobs(ns)
	c, err := all.Create(t.Context(), &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: batchv1.CronJobSpec{
		Schedule: "*/30 * * * *", Suspend: ptr.To(true), ConcurrencyPolicy: batchv1.ForbidConcurrent,
		JobTemplate: batchv1.JobTemplateSpec{Spec: jobOf("", nil).Spec}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Status.LastScheduleTime = ptr.To(metav1.NewTime(time.Now().Add(-time.Hour))) // since then a time was missed
	if _, err := all.UpdateStatus(t.Context(), c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, jobs := podsAndJobs(t, client, ns)
	if _, err := all.Patch(t.Context(), "c", types.MergePatchType, []byte(`{"spec":{"suspend":false}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, jobs, func(j *batchv1.Job) bool {
		return metav1.IsControlledBy(j, c) && j.Annotations[batchv1.CronJobScheduledTimestampAnnotation] != ""
	})
	seen, err := all.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	until(t, seen, func(c *batchv1.CronJob) bool { return len(c.Status.Active) == 1 })
}

// TestReplicationControllerKeepsPods: WL-02, WL-04, WL-06, the first ReplicationController begins its controller, which
// keeps as many pods as it asks for; with it they go.
func TestReplicationControllerKeepsPods(t *testing.T) {
	client := start(t)
	ns := newNamespace(t, client)
	leaveNothing(t, client, ns)
	m := startWorkloads(t, nil)
	if m.Started("replication-controller") {
		t.Error("the controller of ReplicationControllers runs without any")
	}
	pods, _ := podsAndJobs(t, client, ns)
	all := client.CoreV1().ReplicationControllers(ns)
	_, err := all.Create(t.Context(), &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: "rc"},
		Spec: corev1.ReplicationControllerSpec{Replicas: ptr.To[int32](2), Template: &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "rc"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/x"}}}}}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	until(t, pods, func(p *corev1.Pod) bool { there[p.Name] = true; return len(there) == 2 })
	for name := range there {
		if err := client.CoreV1().Pods(ns).Delete(t.Context(), name,
			metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			t.Fatal(err)
		}
		break
	}
	until(t, pods, func(p *corev1.Pod) bool { there[p.Name] = true; return len(there) == 3 })
	if err := all.Delete(t.Context(), "rc",
		metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}); err != nil {
		t.Fatal(err)
	}
	wentAway(t, all, "rc", func(ctx context.Context) error {
		_, err := all.Get(ctx, "rc", metav1.GetOptions{})
		return err
	})
	list, err := client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("left: %v, %v", list.Items, err)
	}
}

// TestTrackedPodOfNoJob: WL-03, WL-04, a pod that was to be counted for a Job which is gone does not stay for ever: it
// begins the Jobs' controller, which lets it go.
func TestTrackedPodOfNoJob(t *testing.T) {
	client := start(t)
	ns := newNamespace(t, client)
	leaveNothing(t, client, ns)
	pods, _ := podsAndJobs(t, client, ns)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "left", Finalizers: []string{batchv1.JobTrackingFinalizer},
			Labels: map[string]string{batchv1.ControllerUidLabel: "gone"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "gone", UID: "gone",
				Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}},
	}
	pod, err := client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	endPod(t, client, pod, 0)
	if err := client.CoreV1().Pods(ns).Delete(t.Context(), pod.Name,
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	m := startWorkloads(t, nil)
	wentFrom(t, pods)
	if !m.Started("job-controller") {
		t.Error("the controller of Jobs does not run")
	}
}
