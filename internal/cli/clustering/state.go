// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	schedule "k8s.io/component-helpers/scheduling/corev1"

	"github.com/wherryproject/wherry/internal/cli/progress"
)

// facts are the objects that show the state of an installation. What could not be read is nil.
type facts struct {
	namespace  string
	available  condition // of the APIService
	deployment *appsv1.Deployment
	agents     *appsv1.DaemonSet
	pods       []corev1.Pod // of the namespace
	nodes      []corev1.Node
}

// condition is one of an object.
type condition struct {
	True    bool
	Reason  string
	Message string
}

// State is what wherry cluster status prints.
type State struct {
	Namespace string       `json:"namespace"`
	API       APIState     `json:"api"`
	Agents    []AgentState `json:"agents"`
}

// APIState is that of the aggregated API.
type APIState struct {
	Available bool   `json:"available"`
	Why       string `json:"why,omitempty"` // it is not, or not all of its pods are ready
	Version   string `json:"version,omitempty"`
	Image     string `json:"image,omitempty"`
	Ready     int32  `json:"ready"`
	Replicas  int32  `json:"replicas"`
}

// AgentState is that of one node.
type AgentState struct {
	Node    string `json:"node"`
	Pod     string `json:"pod,omitempty"`
	Ready   bool   `json:"ready"`
	Version string `json:"version,omitempty"`
	Why     string `json:"why,omitempty"` // it is not ready, or not there
}

const (
	nameLabel    = "app.kubernetes.io/name"
	versionLabel = "app.kubernetes.io/version"
	apiName      = "wherry-debug-api"
	agentName    = "wherry-debug-agent"
)

// stateOf decides the state of an installation.
func stateOf(f facts) State {
	return State{Namespace: f.namespace, API: apiState(f), Agents: agentStates(f)}
}

func apiState(f facts) APIState {
	s := APIState{Available: f.available.True}
	if !s.Available {
		s.Why = oneSentence(f.available.Reason, f.available.Message)
	}
	if f.deployment == nil {
		return s
	}
	s.Ready, s.Version = f.deployment.Status.ReadyReplicas, f.deployment.Labels[versionLabel]
	if n := f.deployment.Spec.Replicas; n != nil {
		s.Replicas = *n
	}
	if all := f.deployment.Spec.Template.Spec.Containers; len(all) > 0 {
		s.Image = all[0].Image
	}
	for i := range f.pods {
		if p := &f.pods[i]; p.Labels[nameLabel] == apiName && !podReady(p) && p.DeletionTimestamp == nil {
			s.Why = "pod " + p.Name + ": " + troubleOf(p)
			break
		}
	}
	return s
}

// agentStates has one for each node, by name; and where nodes cannot be listed, for each pod.
func agentStates(f facts) []AgentState {
	all := []AgentState{}
	at := map[string]bool{}
	for i := range f.pods {
		p := &f.pods[i]
		if p.Labels[nameLabel] != agentName || p.DeletionTimestamp != nil {
			continue
		}
		s := AgentState{Node: wanted(p), Pod: p.Name, Version: p.Labels[versionLabel], Ready: podReady(p)}
		if !s.Ready {
			s.Why = troubleOf(p)
		}
		at[s.Node] = true
		all = append(all, s)
	}
	for i := range f.nodes {
		if n := &f.nodes[i]; !at[n.Name] {
			all = append(all, AgentState{Node: n.Name, Why: whyNone(n, f.agents)})
		}
	}
	slices.SortFunc(all, func(a, b AgentState) int { return strings.Compare(a.Node+"/"+a.Pod, b.Node+"/"+b.Pod) })
	return all
}

// wanted is the node of a DaemonSet's pod, also before it is scheduled: the DaemonSet's controller writes it as an
// affinity by the field metadata.name.
func wanted(p *corev1.Pod) string {
	if p.Spec.NodeName != "" || p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil ||
		p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return p.Spec.NodeName
	}
	for _, term := range p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, r := range term.MatchFields {
			if r.Key == "metadata.name" && len(r.Values) == 1 {
				return r.Values[0]
			}
		}
	}
	return ""
}

// troubleOf says why a pod is not ready.
func troubleOf(p *corev1.Pod) string {
	words := lastWords(p)
	switch trouble, is := progress.Stuck(p); {
	case is && (words == "" || trouble.Reason != "CrashLoopBackOff"): // which says nothing beside them
		return trouble.String()
	case words != "":
		return "its program has ended: " + words
	}
	if p.Status.Phase == corev1.PodRunning {
		return "it runs and is not ready yet"
	}
	return "it is " + strings.ToLower(string(p.Status.Phase))
}

// lastWords are what a pod's program printed when it failed last; empty if it has not, or printed nothing.
func lastWords(p *corev1.Pod) string {
	for _, s := range p.Status.ContainerStatuses {
		for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
			if t == nil || t.ExitCode == 0 || t.Message == "" {
				continue
			}
			text := "\n" + strings.TrimSpace(t.Message) // perhaps the end of its log
			const failed = "\nerror: "
			if i := strings.LastIndex(text, failed); i >= 0 {
				return oneSentence("", text[i+len(failed):])
			}
			return oneSentence("", text[strings.LastIndex(text, "\n"):])
		}
	}
	return ""
}

// whyNone says why a node has no agent.
func whyNone(n *corev1.Node, agents *appsv1.DaemonSet) string {
	if agents == nil {
		return "there is no DaemonSet of agents"
	}
	pod := agents.Spec.Template.Spec
	if want := labels.SelectorFromSet(pod.NodeSelector); !want.Matches(labels.Set(n.Labels)) {
		return "the agents' node selector leaves it out: " + want.String()
	}
	for _, label := range []string{"type", "kubernetes.io/role", "eks.amazonaws.com/compute-type"} {
		if v := n.Labels[label]; v == "virtual-kubelet" || v == "fargate" {
			return fmt.Sprintf("it is not a machine (%s=%s) and runs no DaemonSets", label, v)
		}
	}
	if taint, is := keptOut(n, agents); is {
		return "the agents do not tolerate its taint " + taint.ToString()
	}
	if !nodeReady(n) {
		return "it is not ready"
	}
	return "the DaemonSet has made no pod for it"
}

// keptOut finds a taint of a node that keeps the agents away.
func keptOut(n *corev1.Node, agents *appsv1.DaemonSet) (corev1.Taint, bool) {
	return schedule.FindMatchingUntoleratedTaint(logr.Discard(), n.Spec.Taints, agents.Spec.Template.Spec.Tolerations,
		keepsOut, false)
}

// keepsOut recognizes a taint that keeps pods of DaemonSets away; those of the state of a node, their controller
// tolerates.
func keepsOut(t *corev1.Taint) bool {
	return t.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(t.Key, "node.kubernetes.io/")
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func nodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// oneSentence is a reason and what it says in words.
func oneSentence(reason, message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

// rolledOut reports whether agents run in their present version on all nodes on which they can: what is not ready, or
// just gone, is not waited for. Where nodes are not known, all agents must be there.
func rolledOut(agents *appsv1.DaemonSet, nodes []corev1.Node) (done bool, say string) {
	s := agents.Status
	if s.ObservedGeneration < agents.Generation {
		return false, ""
	}
	away := int32(0)
	selector := labels.SelectorFromSet(agents.Spec.Template.Spec.NodeSelector)
	for i := range nodes {
		n := &nodes[i]
		if _, tainted := keptOut(n, agents); !tainted && !nodeReady(n) && selector.Matches(labels.Set(n.Labels)) {
			away++ // one that is tainted is not among those on which agents are desired
		}
	}
	want := max(s.DesiredNumberScheduled-away, 0)
	say = fmt.Sprintf("agents: %d of %d ready", s.NumberAvailable, s.DesiredNumberScheduled)
	return s.UpdatedNumberScheduled >= want && s.NumberAvailable >= want, say
}
