// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"bytes"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
)

func node(name string, ready bool, change func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"os": "linux"}}}
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	if change != nil {
		change(&n)
	}
	return n
}

func agentOn(name string, ready bool, change func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent-" + name, Labels: map[string]string{nameLabel: agentName, versionLabel: "v1"}}}
	p.Spec.NodeName = name
	p.Spec.Containers = []corev1.Container{{Name: "agent"}}
	p.Status.Phase = corev1.PodRunning
	if ready {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	if change != nil {
		change(&p)
	}
	return p
}

func endedWith(message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}}
}

// DA-10: of each node it is said whether its pods can be debugged, and why not.
func TestAgentStates(t *testing.T) {
	taint := func(key string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}} }
	}
	agents := &appsv1.DaemonSet{}
	agents.Spec.Template.Spec.NodeSelector = map[string]string{"os": "linux"}
	f := facts{agents: agents,
		nodes: []corev1.Node{node("ready", true, nil), node("pulling", true, nil), node("starting", true, nil), node("full", true, nil),
			node("windows", true, func(n *corev1.Node) { n.Labels["os"] = "windows" }), node("tainted", true, taint("gpu")),
			node("cordoned", true, taint("node.kubernetes.io/unschedulable")), node("down", false, nil),
			node("fargate", true, func(n *corev1.Node) { n.Labels["eks.amazonaws.com/compute-type"] = "fargate" })},
		pods: []corev1.Pod{agentOn("ready", true, nil), agentOn("starting", false, nil),
			agentOn("pulling", false, func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
			}),
			agentOn("crashing", false, func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s restarting"}},
					LastTerminationState: endedWith("wherry agent: x\nerror: there is no socket;\nname it\n")}}
			}),
			agentOn("again", false, func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", State: corev1.ContainerState{
					Running: &corev1.ContainerStateRunning{}}, LastTerminationState: endedWith("a\nits last line\n")}}
			}),
			agentOn("repulling", false, func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "it is gone"}},
					LastTerminationState: endedWith("error: earlier")}}
			}),
			agentOn("", false, func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodPending
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
					Reason: corev1.PodReasonUnschedulable, Message: "Insufficient memory"}}
				p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
						MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"full"}}}}}}}}
			}),
			{ObjectMeta: metav1.ObjectMeta{Name: "another", Labels: map[string]string{nameLabel: apiName}}}}}
	want := map[string]string{"crashing": "its program has ended: there is no socket; name it", "again": "its program has ended: its last line",
		"repulling": "it is gone", "ready": "", "starting": "it runs and is not ready yet", "pulling": "no such image", "full": "Insufficient memory",
		"windows": "node selector leaves it out: os=linux", "tainted": "do not tolerate its taint gpu:NoSchedule",
		"cordoned": "has made no pod for it", "down": "it is not ready", "fargate": "runs no DaemonSets"}
	got := stateOf(f).Agents
	if len(got) != len(want) {
		t.Errorf("%d nodes, want %d: %+v", len(got), len(want), got)
	}
	for _, a := range got {
		if why, is := want[a.Node]; !is || !strings.Contains(a.Why, why) || (why == "") != (a.Ready && a.Why == "") {
			t.Errorf("node %s: %+v, want %q", a.Node, a, why)
		}
	}
}

// The API's state says what is wrong with one of its pods, and a result of nothing known is no panic.
func TestAPIState(t *testing.T) {
	if s := stateOf(facts{namespace: "x", available: condition{false, "MissingEndpoints", "none\nyet"}}); s.API.Available ||
		s.API.Why != "MissingEndpoints: none yet" || s.Agents == nil {
		t.Errorf("%+v", s)
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{versionLabel: "v2"}}}
	d.Spec.Replicas, d.Status.ReadyReplicas = ptr.To[int32](2), 1
	d.Spec.Template.Spec.Containers = []corev1.Container{{Image: "x/wherry:v2"}}
	bad := agentOn("a", false, func(p *corev1.Pod) { p.Labels[nameLabel] = apiName })
	s := stateOf(facts{available: condition{True: true}, deployment: d, pods: []corev1.Pod{bad}}).API
	if !s.Available || s.Version != "v2" || s.Image != "x/wherry:v2" || s.Ready != 1 || s.Replicas != 2 ||
		!strings.HasPrefix(s.Why, "pod agent-a: ") {
		t.Errorf("%+v", s)
	}
	var out bytes.Buffer
	if err := (State{Namespace: "ns", API: s, Agents: []AgentState{{Node: "n", Pod: "p", Ready: true}, {Node: "m", Why: "because"}}}).print(
		cmdline.Terminal{Out: &out}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"API available, version v2, 1 of 2 pods ready, namespace ns", "because", "none", "ready"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not said: %s", want, out.String())
		}
	}
}

// Nodes that are not ready are not waited for; those that are, are.
func TestRolledOut(t *testing.T) {
	up, down := node("a", true, nil), node("b", false, nil)
	tainted := node("d", false, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	})
	lost := node("e", false, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	})
	other := node("c", false, func(n *corev1.Node) { n.Labels["os"] = "windows" })
	for name, c := range map[string]struct {
		status appsv1.DaemonSetStatus
		nodes  []corev1.Node
		done   bool
	}{
		"not seen yet":                {appsv1.DaemonSetStatus{ObservedGeneration: 1}, nil, false},
		"all":                         {appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 2}, []corev1.Node{up, up}, true},
		"one lacks":                   {appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 1}, []corev1.Node{up, up}, false},
		"one is down":                 {appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 1}, []corev1.Node{up, down}, true},
		"another is down":             {appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 1}, []corev1.Node{up, up, other}, false},
		"of another version":          {appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 1, NumberAvailable: 2}, []corev1.Node{up, up}, false},
		"there are no nodes":          {appsv1.DaemonSetStatus{ObservedGeneration: 2}, nil, true},
		"nothing is known of":         {appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 1}, nil, false},
		"one that is tainted is down": {appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 1}, []corev1.Node{up, up, tainted}, false},
		"one that was lost is down":   {appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 1}, []corev1.Node{up, lost}, true},
	} {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: c.status}
		d.Spec.Template.Spec.NodeSelector = map[string]string{"os": "linux"}
		if done, _ := rolledOut(d, c.nodes); done != c.done {
			t.Errorf("%s: %v", name, done)
		}
	}
}

// What was done with an object is not said where one may not see it.
func TestWord(t *testing.T) {
	for before, want := range map[string]string{"": "created", "7": "unchanged", "6": "configured", unseen: "applied"} {
		if got := word(before, "7"); got != want {
			t.Errorf("%q: %s", before, got)
		}
	}
}

func TestMissingRights(t *testing.T) {
	rights := []authorizationv1.ResourceAttributes{{Verb: "create", Resource: "namespaces"},
		{Verb: "patch", Group: "apps", Resource: "daemonsets", Name: "a", Namespace: "n"}}
	if err := missing(rights, []bool{false, false}); err != nil {
		t.Error(err)
	}
	err := missing(rights, []bool{true, true})
	if err == nil || !strings.Contains(err.Error(), "\ncreate namespaces\npatch daemonsets.apps a in namespace n\n") {
		t.Errorf("%v", err)
	}
}
