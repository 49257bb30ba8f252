// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/test/images"
)

// WL-03, SC-21, SC-05: Jobs whose pods have sidecars complete, of both restart policies; one whose pods are never restarted
// completes though a sidecar was killed for its memory, which is started again.
func TestJobWithSidecars(t *testing.T) {
	t.Parallel()
	s := shared(t)
	limit := func(c corev1.Container) corev1.Container {
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("48Mi")}
		return c
	}
	for name, policy := range map[string]corev1.RestartPolicy{"never": corev1.RestartPolicyNever, "onfailure": corev1.RestartPolicyOnFailure} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := s.With(t)
			st := s.NewStage(t)
			pod := WithInit(st.Pod("p", limit(st.Act("main", "-until"))), Sidecar(limit(st.Act("greedy", "-alloc", "100"))),
				Sidecar(limit(st.Act("modest"))))
			pod.Spec.RestartPolicy = policy
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod.Spec}}}
			if policy == corev1.RestartPolicyNever {
				job.Spec.BackoffLimit = ptr.To[int32](0) // of OnFailure it counts restarts, of sidecars too
			}
			if _, err := s.Client.BatchV1().Jobs(s.Namespace).Create(s.Context(), job, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			st.Await("main", "up", 1)
			s.Kubectl("wait", "job/"+name, "--for=jsonpath={.status.active}=1", "--timeout=60s")
			of := strings.TrimSpace(s.Kubectl("get", "pods", "-l", "job-name="+name, "-o", "jsonpath={.items[*].metadata.name}").Out)
			s.WaitRestarts(of, "greedy", 1)
			st.Set("main", "go")
			s.Kubectl("wait", "job/"+name, "--for=condition=Complete", "--timeout=60s")
			s.Kubectl("get", "job", name).Has("Complete", "1/1")
			if pods := s.Kubectl("get", "pods", "-l", "job-name="+name, "-o", "name").Lines(); len(pods) != 1 {
				t.Errorf("SC-21 pods of the Job: %v", pods)
			}
			if p := s.Get(of); len(p.Finalizers) != 0 || p.Status.Phase != corev1.PodSucceeded {
				t.Errorf("WL-03 its pod: finalizers %v, %s", p.Finalizers, p.Status.Phase)
			}
		})
	}
}

// WL-03, PL-10: a pod of a Job that is evicted ends as failed, with the reason, and stays until the Job has counted it; one whose
// policy ignores disruptions then goes on with another pod, and no retry is spent.
func TestJobPodEvicted(t *testing.T) {
	t.Parallel()
	s := shared(t)
	st := s.NewStage(t)
	pod := st.Pod("p", st.Act("main", "-until", "-code", "3", "-termcode", "3"))
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := s.Client.BatchV1().Jobs(s.Namespace).Create(s.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j"},
		Spec: batchv1.JobSpec{BackoffLimit: ptr.To[int32](0), Template: corev1.PodTemplateSpec{Spec: pod.Spec},
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionIgnore,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}}}}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	st.Await("main", "up", 1)
	first := strings.TrimSpace(s.Kubectl("get", "pods", "-l", "job-name=j", "-o", "jsonpath={.items[*].metadata.name}").Out)
	// A finalizer of the test's own, to see what the pod ends as.
	s.Kubectl("patch", "pod", first, "--type=json", "-p", `[{"op":"add","path":"/metadata/finalizers/-","value":"wherry.test/look"}]`)
	err = s.Client.CoreV1().Pods(s.Namespace).EvictV1(s.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: first}})
	if err != nil {
		t.Fatal(err)
	}
	ended := s.WaitPhase(first, corev1.PodFailed)
	if Condition(ended, corev1.DisruptionTarget) != corev1.ConditionTrue {
		t.Errorf("PL-10 its conditions: %v", ended.Status.Conditions)
	}
	st.Await("main", "up", 2)
	s.Kubectl("patch", "pod", first, "--type=json", "-p", `[{"op":"test","path":"/metadata/finalizers/0","value":"wherry.test/look"},{"op":"remove","path":"/metadata/finalizers/0"}]`)
	s.WaitGone(ended)
	s.Kubectl("get", "job", "j", "-o", "jsonpath={.status.failed}").Is("")
	st.Set("main", "go")
	s.Kubectl("wait", "job/j", "--for=condition=Failed", "--timeout=60s") // the second pod has failed by itself
	s.Kubectl("get", "job", "j", "-o", "jsonpath={.status.failed}").Is("1")
}

// WL-02, WL-03, WL-04: by the real kubectl, an Indexed Job whose pods know their index and find one another by name, a Job made
// of a CronJob, and a ReplicationController that keeps two pods.
func TestJobsAndReplicationControllers(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.objects(strings.NewReplacer("IDLE", Idle, "BUSYBOX", images.BusyboxRef).Replace(`
apiVersion: v1
kind: Service
metadata: {name: workers}
spec: {clusterIP: None, selector: {job-name: indexed}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: indexed}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  template:
    spec:
      subdomain: workers
      restartPolicy: OnFailure
      containers:
      - name: c
        image: BUSYBOX
        command: [sh, -c, "until nslookup -type=a indexed-1.workers.$NS.svc.cluster.local; do sleep 0.2; done; echo $JOB_COMPLETION_INDEX at $(hostname); sleep 3"]
        env: [{name: NS, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  timeZone: Europe/Berlin
  jobTemplate:
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: BUSYBOX, command: [echo, saved]}]}}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: old}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: old}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: BUSYBOX, command: [sh, -c, "IDLE"]}]}
`))
	k.Kubectl("create", "job", "now", "--from=cronjob/nightly")
	k.Kubectl("wait", "job/now", "job/indexed", "--for=condition=Complete", "--timeout=90s")
	k.Kubectl("logs", "job/now").Has("saved")
	k.Kubectl("logs", "-l", "job-name=indexed", "--tail=-1").Has("0 at indexed-0", "1 at indexed-1")
	k.Kubectl("get", "cronjob").Has("nightly", "0 3 * * *", "Europe/Berlin")
	k.Kubectl("wait", "rc/old", "--for=jsonpath={.status.readyReplicas}=2", "--timeout=60s")
	pod := strings.Fields(k.Kubectl("get", "pods", "-l", "app=old", "-o", "jsonpath={.items[*].metadata.name}").Out)[0]
	k.Kubectl("delete", "pod", pod)
	k.Kubectl("wait", "rc/old", "--for=jsonpath={.status.readyReplicas}=2", "--timeout=60s")
	k.Kubectl("describe", "rc", "old").Has("2 current / 2 desired")
	k.Kubectl("delete", "rc/old", "job/indexed", "cronjob/nightly", "--cascade=foreground", "--timeout=60s")
	if out := k.Kubectl("get", "jobs,pods", "-o", "name").Out; out != "" {
		t.Errorf("WL-04 left of what is gone: %s", out)
	}
}
