// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// report is an answer in the making.
type report struct {
	Facts
	findings []*Finding
	logs     []Log
}

func (r *report) add(f *Finding) *Finding {
	if f != nil {
		r.findings = append(r.findings, f)
	}
	return f
}

// Explain makes an answer of what is known.
func Explain(f Facts) Answer {
	r := &report{Facts: f}
	if f.Pod == nil {
		return r.workload()
	}
	pod := f.Pod
	r.leaving()
	r.podStatus()
	r.references()
	r.scheduling()
	r.node()
	r.preparation()
	for ref := range podspec.OwnContainers(&pod.Spec) {
		r.container(ref)
	}
	r.gates()
	r.names()
	a := Answer{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, State: state(pod), Logs: r.logs,
		Unseen: f.Unseen}
	r.finish(&a)
	return a
}

// finish puts what was found in its order: what is wrong first, and what is over last.
func (r *report) finish(a *Answer) {
	for _, past := range []bool{false, true} {
		for _, f := range r.findings {
			if f.Past == past {
				a.Findings = append(a.Findings, *f)
				a.Wrong = a.Wrong || !past
			}
		}
	}
	switch {
	case a.Wrong:
		a.Summary = a.Findings[0].Where + ": " + a.Findings[0].What
		a.Changes = r.changes()
	case r.Pod != nil:
		a.Summary = r.nothing()
	}
	if a.Findings == nil {
		a.Findings = []Finding{}
	}
	if a.Unseen == nil && len(r.Unseen) > 0 {
		a.Unseen = r.Unseen
	}
	a.tidy()
}

// restarts is how often something was started again, in words.
func restarts[N int | int32](n N) string {
	if n == 1 {
		return "1 restart"
	}
	return fmt.Sprintf("%d restarts", n)
}

// state is a pod's phase with what else kubectl shows of it.
func state(pod *corev1.Pod) string {
	ready, again := 0, int32(0)
	number := len(pod.Spec.Containers)
	for kind, s := range podspec.OwnStatuses(&pod.Status) {
		again += s.RestartCount
		if kind == podspec.Main && s.Ready {
			ready++
		}
	}
	text := string(pod.Status.Phase)
	if pod.Status.Reason != "" {
		text += ", " + pod.Status.Reason
	}
	if pod.DeletionTimestamp != nil {
		text += ", being deleted"
	}
	if !ended(pod) {
		text += fmt.Sprintf(", %d of %d containers ready", ready, number)
	}
	if again > 0 {
		text += ", " + restarts(again)
	}
	if pod.Spec.NodeName != "" {
		return text + ", on node " + pod.Spec.NodeName
	}
	return text + ", on no node yet"
}

// nothing is what to say of a pod with which nothing is wrong.
func (r *report) nothing() string {
	pod := r.Pod
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		return "Nothing is wrong: it has run to its end, with success."
	case pod.DeletionTimestamp != nil:
		return "Nothing is wrong: it is being deleted, and its time to end is not over."
	case podspec.IsTrue(&pod.Status, corev1.PodReady):
		return "Nothing is wrong: it runs and is ready."
	case pod.Status.Phase == corev1.PodRunning:
		return "Nothing is found to be wrong, but it is not ready yet."
	}
	since := ""
	if r.Now.Sub(pod.CreationTimestamp.Time) > time.Minute {
		since = ", for " + about(r.Now.Sub(pod.CreationTimestamp.Time))
	}
	if e := r.latest("", "Pulling"); e != nil {
		return "Nothing is found to be wrong: it is being started" + since + ". " + e.Message
	}
	return "Nothing is found to be wrong: it is being started" + since + "."
}

// leaving is about a pod that should be gone.
func (r *report) leaving() {
	at := r.Pod.DeletionTimestamp
	if at == nil || r.Now.Before(at.Add(10*time.Second)) {
		return
	}
	f := r.add(&Finding{Where: "pod", What: fmt.Sprintf("it should have been gone %s ago", about(r.Now.Sub(at.Time)))})
	f.fact("metadata.deletionTimestamp", "to be gone by %s", at.UTC().Format(time.RFC3339))
	if names := r.Pod.Finalizers; len(names) > 0 {
		f.What += fmt.Sprintf("; it is kept by %d finalizers", len(names))
		f.fact("metadata.finalizers", "%s", strings.Join(names, ", "))
		f.try("find out why the controller that owns the finalizer does not take it away; taking it away by hand skips its clean-up")
		return
	}
	f.try("look whether its node is well (kubectl describe node %s), and what of the pod still runs there",
		r.Pod.Spec.NodeName)
}

// podStatus is about a pod that was ended or refused as a whole.
func (r *report) podStatus() {
	s := &r.Pod.Status
	if s.Reason == "" {
		return
	}
	f := &Finding{Where: "pod"}
	switch {
	case s.Reason == "Evicted":
		f.What = "its node evicted it, since a resource ran out there"
		f.try("set requests to what it needs (pods beyond their requests go first), or give the node more room")
	case s.Reason == "DeadlineExceeded":
		f.What = "it ran for longer than it may (activeDeadlineSeconds)"
		f.try("raise activeDeadlineSeconds of the pod or its Job, or find out what took so long")
	case s.Reason == "NodeLost" || s.Reason == "NodeShutdown" || s.Reason == "Terminated" || s.Reason == "Shutdown":
		f.What = "its node went down or was lost"
		f.try("what owns it makes another one; a pod without an owner has to be created again")
	case s.Reason == "Preempting" || s.Reason == "Preempted":
		f.What = "it had to make room for a pod of higher priority"
		f.try("give it a priorityClassName, or the cluster more room")
	case strings.HasPrefix(s.Reason, "OutOf") || s.Reason == "NodeAffinity" || s.Reason == "UnexpectedAdmissionError" ||
		s.Reason == "TopologyAffinityError" || s.Reason == "NodePorts":
		f.What = "its node refused it: " + s.Reason
		f.try("delete it; what owns it makes another one, which may go to another node")
	default:
		return
	}
	r.add(f.fact("status.reason, status.message", "%s", join(": ", s.Reason, s.Message)))
}

// node is about the pod's node.
func (r *report) node() {
	if r.Pod.Spec.NodeName == "" || ended(r.Pod) {
		return
	}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.Name != r.Pod.Spec.NodeName || n.Ready == "" || n.Ready == corev1.ConditionTrue {
			continue
		}
		f := r.add(&Finding{Where: "node " + n.Name,
			What: "its node is not ready, so what is said of the pod may be old"})
		f.fact("node "+n.Name+", condition Ready", "%s", join(": ", string(n.Ready), n.Words))
		f.try("look at the node: kubectl describe node %s", n.Name)
	}
}

// gates is about conditions that others have to set.
func (r *report) gates() {
	if !podspec.IsTrue(&r.Pod.Status, corev1.ContainersReady) {
		return
	}
	for _, g := range r.Pod.Spec.ReadinessGates {
		if podspec.IsTrue(&r.Pod.Status, g.ConditionType) {
			continue
		}
		f := &Finding{Where: "pod",
			What: fmt.Sprintf("all its containers are ready, but its readiness gate %s is not met",
				g.ConditionType)}
		if c := podspec.Condition(&r.Pod.Status, g.ConditionType); c != nil {
			f.fact("status.conditions", "%s", join(": ", string(c.Type)+"="+string(c.Status), c.Reason, c.Message))
		} else {
			f.fact("status.conditions", "there is no condition %s", g.ConditionType)
		}
		r.add(f.try("look at the controller that sets this condition"))
	}
}

// names is about names that were asked for in vain, unless the log of a container has shown it.
func (r *report) names() {
	for _, v := range vain(r.Facts) {
		known := slices.ContainsFunc(r.findings, func(f *Finding) bool { return strings.Contains(f.What, v.name) })
		says := fmt.Sprintf("%s was asked for %d times: %s", v.name, v.times, strings.Join(v.codes, ", "))
		if known {
			for _, f := range r.findings {
				if strings.Contains(f.What, v.name) {
					f.fact("names asked for (wherry timeline --names)", "%s", says)
				}
			}
			continue
		}
		f := &Finding{Where: "pod", What: "it asked for a name that does not exist: " + v.name,
			Past: podspec.IsTrue(&r.Pod.Status, corev1.PodReady)}
		if len(r.findings) > 0 && !r.findings[0].Past {
			f.Past = false
		}
		f.fact("names asked for (wherry timeline --names)", "%s", says)
		r.add(f)
		r.suggest(f, v.name)
	}
}

// suggest names the Service that was likely meant.
func (r *report) suggest(f *Finding, name string) {
	s, words := meant(r.Facts, name)
	if s == nil {
		f.Try = append(f.Try, "look whether there is such a Service, and in which namespace: kubectl get services -A")
		return
	}
	f.fact("services", "there is a Service %s in namespace %s", s.Name, s.Namespace)
	f.Try = append([]string{"ask for " + words + " if that was meant"}, f.Try...)
}

// latest is the last event with one of these reasons about a container; about the pod with an empty name.
func (r *report) latest(container string, reasons ...string) *corev1.Event {
	var found *corev1.Event
	for i := range r.Events {
		e := &r.Events[i]
		if e.InvolvedObject.Kind != "Pod" || !slices.Contains(reasons, e.Reason) ||
			container != "" && containerOf(e) != container {
			continue
		}
		if found == nil || lastOf(e).After(lastOf(found)) {
			found = e
		}
	}
	return found
}

// lastOf is when an event was last seen.
func lastOf(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.FirstTimestamp.Time
}

// firstOf is when an event was first seen.
func firstOf(e *corev1.Event) time.Time {
	switch {
	case !e.FirstTimestamp.IsZero():
		return e.FirstTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return lastOf(e)
}

// eventFrom is how an event is named as a source.
func eventFrom(e *corev1.Event) string {
	text := "event " + e.Reason
	if e.Count > 1 {
		text += fmt.Sprintf(" ×%d", e.Count)
	}
	return text
}
