// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// Standing is how far a workload is: what makes pods for people.
type Standing struct {
	Text    string // for people, another one when there is news; empty: nothing is to be shown
	Trouble string // what keeps it from being as it was asked for, or why it failed
	Ready   bool   // all that it asks for runs
	Ended   bool   // nothing more will run
	Failed  bool   // it ended, and not well
}

// Workload is how far one is. What its controller has not seen yet is not ready. Of other objects it knows nothing.
func Workload(obj runtime.Object) Standing {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return deployment(o)
	case *appsv1.ReplicaSet:
		s := replicas(o.Status.ReadyReplicas, o.Spec.Replicas, o.Status.ObservedGeneration >= o.Generation)
		for _, c := range o.Status.Conditions {
			s.hinder(c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue, c.Reason, c.Message)
		}
		return s
	case *corev1.ReplicationController:
		s := replicas(o.Status.ReadyReplicas, o.Spec.Replicas, o.Status.ObservedGeneration >= o.Generation)
		for _, c := range o.Status.Conditions {
			s.hinder(c.Type == corev1.ReplicationControllerReplicaFailure && c.Status == corev1.ConditionTrue, c.Reason,
				c.Message)
		}
		return s
	case *appsv1.StatefulSet:
		return statefulSet(o)
	case *appsv1.DaemonSet:
		s := replicas(o.Status.NumberReady, &o.Status.DesiredNumberScheduled,
			o.Status.ObservedGeneration >= o.Generation)
		s.Ready = s.Ready && o.Status.UpdatedNumberScheduled == o.Status.DesiredNumberScheduled
		return s
	case *batchv1.Job:
		return job(o)
	case *batchv1.CronJob:
		return cronJob(o)
	}
	return Standing{}
}

func (s *Standing) hinder(does bool, reason, message string) {
	if does {
		s.Trouble = reasoned(reason, message)
	}
}

// replicas is the standing of what keeps a number of pods, by default one. Nothing is shown before its controller has
// seen it.
func replicas(ready int32, want *int32, seen bool) Standing {
	if !seen {
		return Standing{}
	}
	n := ptr.Deref(want, 1)
	return Standing{Text: fmt.Sprintf("%d of %d ready", ready, n), Ready: ready == n}
}

func deployment(d *appsv1.Deployment) Standing {
	n := ptr.Deref(d.Spec.Replicas, 1)
	s := replicas(d.Status.ReadyReplicas, d.Spec.Replicas, d.Status.ObservedGeneration >= d.Generation)
	s.Ready = s.Ready && d.Status.UpdatedReplicas == n && d.Status.Replicas == n && d.Status.AvailableReplicas == n
	for _, c := range d.Status.Conditions {
		s.hinder(c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse, c.Reason, c.Message)
		s.hinder(c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue, c.Reason, c.Message)
	}
	return s
}

func statefulSet(o *appsv1.StatefulSet) Standing {
	s := replicas(o.Status.ReadyReplicas, o.Spec.Replicas, o.Status.ObservedGeneration >= o.Generation)
	updated := ptr.Deref(o.Spec.Replicas, 1)
	if u := o.Spec.UpdateStrategy.RollingUpdate; u != nil {
		updated -= ptr.Deref(u.Partition, 0) // those below it keep what they have
	}
	s.Ready = s.Ready && (o.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType ||
		o.Status.UpdatedReplicas >= updated)
	return s
}

func job(j *batchv1.Job) Standing {
	var parts []string
	if j.Status.Succeeded > 0 || j.Status.Failed > 0 {
		if n := j.Spec.Completions; n != nil && *n > 1 {
			parts = append(parts, fmt.Sprintf("%d of %d succeeded", j.Status.Succeeded, *n))
		}
		if j.Status.Failed > 0 {
			parts = append(parts, fmt.Sprintf("%d failed", j.Status.Failed))
		}
	}
	s := Standing{Ready: j.Status.Active > 0 && ptr.Deref(j.Status.Ready, 0) == j.Status.Active}
	for _, c := range j.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			parts = append(parts, "complete")
			s.Ended = true
		case batchv1.JobFailed:
			s.Ended, s.Failed, s.Trouble = true, true, "failed: "+reasoned(c.Reason, c.Message)
		case batchv1.JobSuspended:
			parts = append(parts, "suspended")
			s.Ready = true // nothing more comes until somebody lets it go on
		}
	}
	s.Text = strings.Join(parts, ", ")
	return s
}

func cronJob(c *batchv1.CronJob) Standing {
	s := Standing{Ready: true, Text: fmt.Sprintf("runs at %q", c.Spec.Schedule)}
	if c.Spec.TimeZone != nil {
		s.Text += " in " + *c.Spec.TimeZone
	}
	switch n := len(c.Status.Active); {
	case ptr.Deref(c.Spec.Suspend, false):
		s.Text = "suspended"
	case n == 1:
		s.Text = "1 job active"
	case n > 1:
		s.Text = fmt.Sprintf("%d jobs active", n)
	}
	return s
}
