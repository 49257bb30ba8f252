// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

const (
	jobText = `{apiVersion: batch/v1, kind: Job, metadata: {name: sum}, spec: {template: {spec: {containers: [{name: main, image: i}]}}}}
`
	deploymentText = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: app}, spec: {selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: i}]}}}}
`
)

// workloads is a world whose server gives workloads an identity; the test plays their controllers.
func workloads(t *testing.T, there ...runtime.Object) (w *world, made <-chan metav1.Object) {
	w = newWorld(t, there...)
	all := make(chan metav1.Object, 8)
	w.client.PrependReactor("create", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
		c := a.(k8stesting.CreateActionImpl)
		if m, ok := c.Object.(metav1.Object); ok && len(c.CreateOptions.DryRun) == 0 && isWorkload(c.Object) {
			m.SetUID(types.UID(m.GetName() + "-uid"))
			m.SetResourceVersion("1")
			defer func() { all <- m }()
		}
		return false, nil, nil
	})
	for _, resource := range []string{"jobs", "deployments"} {
		w.client.PrependWatchReactor(resource, func(a k8stesting.Action) (bool, watch.Interface, error) {
			defer func() { w.watched <- struct{}{} }()
			stream, err := w.client.Tracker().Watch(a.GetResource(), a.GetNamespace())
			return true, stream, err
		})
	}
	return w, all
}

// pod has a workload, or what stands between, make one.
func (w *world) pod(name string, owner metav1.Object, kind string, status corev1.PodStatus) {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name),
		Labels: map[string]string{"a": "b"}, OwnerReferences: []metav1.OwnerReference{{Kind: kind,
			Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true)}}},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
		Status: status}
	if _, err := w.client.CoreV1().Pods("default").Create(w.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// begun waits until the workload and its pods are watched.
func (w *world) begun(end <-chan string) {
	w.t.Helper()
	for range 2 {
		select {
		case <-w.watched:
		case got := <-end:
			w.t.Fatalf("ended with %q; said:\n%s", got, w.err.String())
		}
	}
}

// ended is the status of a pod that ended with a code, the later the higher it is.
func ended(code int32) (s corev1.PodStatus) {
	phase := corev1.PodSucceeded
	if code != 0 {
		phase = corev1.PodFailed
	}
	exits(code, phase)(&s)
	s.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.Unix(int64(code), 0)
	return s
}

func (w *world) job(name string, condition batchv1.JobConditionType) {
	w.t.Helper()
	j, err := w.client.BatchV1().Jobs("default").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	j.Status.Conditions = []batchv1.JobCondition{{Type: condition, Status: corev1.ConditionTrue,
		Reason: "BackoffLimitExceeded"}}
	if _, err := w.client.BatchV1().Jobs("default").UpdateStatus(w.t.Context(), j, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// A Job's exit code is 0 when it is complete, whatever pods failed on the way, and else that of its last pod.
func TestJobExitCode(t *testing.T) {
	for condition, want := range map[batchv1.JobConditionType]string{batchv1.JobComplete: "0 <nil>",
		batchv1.JobFailed: "4 <nil>"} {
		t.Run(string(condition), func(t *testing.T) {
			w, made := workloads(t)
			end := w.run(Options{}, jobText)
			job := <-made
			w.begun(end)
			w.pod("sum-1", job, "Job", ended(3))
			w.pod("stranger", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "x"}}, "ReplicaSet", ended(9))
			w.pod("sum-2", job, "Job", ended(4))
			w.job("sum", condition)
			w.expect(end, want)
			if said := w.err.String(); !strings.Contains(said, "job sum created") ||
				!strings.Contains(said, "sum-1/main failed with exit code 3") || strings.Contains(said, "stranger") ||
				strings.Contains(said, "job/sum failed: BackoffLimitExceeded") != (condition == batchv1.JobFailed) {
				t.Errorf("said:\n%s", said)
			}
			if !strings.Contains(w.out.String(), "sum-1/main | fake logs") {
				t.Errorf("the log is %q", w.out.String())
			}
		})
	}
}

// A Deployment's pods are found by its ReplicaSets; Ctrl-C deletes the Deployment and waits until it is gone.
func TestDeploymentUntilInterrupted(t *testing.T) {
	w, made := workloads(t)
	foreground := make(chan bool, 2)
	w.client.PrependReactor("delete", "deployments", func(a k8stesting.Action) (bool, runtime.Object, error) {
		p := a.(k8stesting.DeleteActionImpl).DeleteOptions.PropagationPolicy
		foreground <- p != nil && *p == metav1.DeletePropagationForeground
		return false, nil, nil
	})
	end := w.run(Options{}, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n---\n"+deploymentText)
	d := <-made
	w.begun(end)
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "app-1", Namespace: "default", UID: "rs",
		OwnerReferences: []metav1.OwnerReference{{UID: d.GetUID(), Controller: ptr.To(true)}}}}
	if err := w.client.Tracker().Add(set); err != nil {
		t.Fatal(err)
	}
	w.pod("app-1-x", set, "ReplicaSet", corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady,
		Status: corev1.ConditionTrue}}})
	<-w.watched // the pod's own
	w.interrupts <- os.Interrupt
	if !<-foreground {
		t.Error("its pods would be left to the collector")
	}
	if err := w.client.CoreV1().Pods("default").Delete(t.Context(), "app-1-x", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	w.expect(end, "130 <nil>")
	if said := w.err.String(); !strings.Contains(said, "app-1-x ready") ||
		!strings.Contains(said, "configmap c removed") {
		t.Errorf("said:\n%s", said)
	}
}

// A ReplicaSet that cannot be read once does not hide its pods.
func TestReplicaSetThatCannotBeReadOnce(t *testing.T) {
	w, made := workloads(t)
	busy := make(chan bool, 1)
	busy <- true
	w.client.PrependReactor("get", "replicasets", func(k8stesting.Action) (bool, runtime.Object, error) {
		select {
		case <-busy:
			return true, nil, apierrors.NewTooManyRequests("busy", 1)
		default:
			return false, nil, nil
		}
	})
	end := w.run(Options{}, deploymentText)
	d := <-made
	w.begun(end)
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "app-1", Namespace: "default", UID: "rs",
		OwnerReferences: []metav1.OwnerReference{{UID: d.GetUID(), Controller: ptr.To(true)}}}}
	if err := w.client.Tracker().Add(set); err != nil {
		t.Fatal(err)
	}
	w.pod("app-1-x", set, "ReplicaSet", corev1.PodStatus{})
	select {
	case <-w.watched: // the pod's own
	case <-time.After(time.Minute):
		t.Error("the pod is not followed")
	}
	if err := w.client.CoreV1().Pods("default").Delete(t.Context(), "app-1-x", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	w.interrupts <- os.Interrupt
	w.expect(end, "130 <nil>")
}

// What was there before is updated and followed, and stays; that nothing of it was changed shows in its version.
func TestWorkloadThatWasThere(t *testing.T) {
	old := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: "default", UID: "old",
		ResourceVersion: "1"}}
	w, _ := workloads(t, old)
	end := w.run(Options{Remove: true}, deploymentText)
	w.begun(end)
	w.interrupts <- os.Interrupt
	w.expect(end, "130 <nil>")
	if _, err := w.client.AppsV1().Deployments("default").Get(t.Context(), "app", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if said := w.err.String(); !strings.Contains(said, "deployment app unchanged") ||
		strings.Count(said, "deployment/app was there before and stays") != 1 {
		t.Errorf("said:\n%s", said)
	}
}

func alreadyExists(a k8stesting.Action) (bool, runtime.Object, error) {
	return true, nil, apierrors.NewAlreadyExists(a.GetResource().GroupResource(), "sum")
}

// What cannot run again, or is taken away, or will never run, ends the run.
func TestWorkloadTroubles(t *testing.T) {
	t.Run("a job is there", func(t *testing.T) {
		w, _ := workloads(t)
		w.client.PrependReactor("create", "jobs", alreadyExists)
		w.expect(w.run(Options{}, jobText),
			"125 f.yaml:1: job default/sum already exists; delete it first (wherry kubectl delete job -n default sum)")
	})
	t.Run("deleted by another", func(t *testing.T) {
		w, _ := workloads(t)
		end := w.run(Options{}, deploymentText)
		w.begun(end)
		if err := w.client.AppsV1().Deployments("default").Delete(t.Context(), "app",
			metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.expect(end, "1 deployment default/app was deleted by someone else")
	})
	t.Run("no image", func(t *testing.T) {
		w, made := workloads(t)
		end := w.run(Options{}, jobText)
		job := <-made
		w.begun(end)
		var s corev1.PodStatus
		waits("ErrImageNeverPull", "no such image")(&s)
		w.pod("sum-1", job, "Job", s)
		w.expect(end,
			"125 container main: ErrImageNeverPull: no such image\njob default/sum was not deleted: look at it (wherry kubectl describe job/sum), or delete it (wherry kubectl delete job/sum)")
	})
}

// Detached, a run returns when all that is asked for is ready.
func TestWorkloadDetached(t *testing.T) {
	w, _ := workloads(t)
	end := w.run(Options{Detach: true}, deploymentText)
	w.begun(end)
	d, err := w.client.AppsV1().Deployments("default").Get(t.Context(), "app", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.Status = appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	if _, err := w.client.AppsV1().Deployments("default").UpdateStatus(t.Context(), d,
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.expect(end, "0 <nil>")
	if !strings.Contains(w.err.String(), "deployment/app 1 of 1 ready") {
		t.Errorf("said:\n%s", w.err.String())
	}
}

// Detached, a pod that is ready is not the end of its Job: how the Job ends is.
func TestJobDetached(t *testing.T) {
	w, made := workloads(t)
	end := w.run(Options{Detach: true}, jobText)
	job := <-made
	w.begun(end)
	w.pod("sum-1", job, "Job", corev1.PodStatus{Phase: corev1.PodRunning,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}})
	<-w.watched // the pod's own
	pod, err := w.client.CoreV1().Pods("default").Get(t.Context(), "sum-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status = ended(7)
	if _, err := w.client.CoreV1().Pods("default").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.job("sum", batchv1.JobFailed)
	w.expect(end, "7 <nil>")
}
