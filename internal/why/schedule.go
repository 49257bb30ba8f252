// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/wherryproject/wherry/internal/podspec"
)

// mostNodes is for how many nodes it is shown why the pod does not go there.
const mostNodes = 6

// scheduling is about a pod without a node.
func (r *report) scheduling() {
	pod := r.Pod
	if pod.Spec.NodeName != "" || ended(pod) {
		return
	}
	c := podspec.Condition(&pod.Status, corev1.PodScheduled)
	f := &Finding{Where: "pod"}
	switch {
	case len(pod.Spec.SchedulingGates) > 0:
		f.What = "nobody schedules it yet, since it has scheduling gates"
		var names []string
		for _, g := range pod.Spec.SchedulingGates {
			names = append(names, g.Name)
		}
		f.fact("spec.schedulingGates", "%s", strings.Join(names, ", "))
		r.add(f.try("look at the controller that is to take the gates away"))
		return
	case c == nil:
		if len(r.findings) > 0 {
			return
		}
		f.What = "no scheduler has looked at it"
		f.fact("spec.schedulerName", "%s", pod.Spec.SchedulerName)
		f.fact("status.conditions", "there is no condition PodScheduled")
		r.add(f.try("look whether a scheduler of that name runs; wait if the pod was created only just now"))
		return
	case c.Status != corev1.ConditionFalse:
		return
	}
	from := "status.conditions PodScheduled=False, " + c.Reason
	if claims := podspec.ClaimNames(pod); len(r.findings) > 0 && len(claims) > 0 && strings.Contains(c.Message,
		"PersistentVolumeClaim") {
		r.findings[len(r.findings)-1].fact(from, "%s", c.Message) // the claim is the cause
		return
	}
	f.What = "no node can take it"
	f.fact(from, "%s", c.Message)
	r.add(f)
	r.places(f)
	for _, s := range schedulersWords() {
		if strings.Contains(c.Message, s.phrase) {
			f.What += "; " + s.means
			f.try("%s", s.try)
		}
	}
}

// schedulersWords are words of schedulers about what is not to be seen from a node alone.
func schedulersWords() []struct{ phrase, means, try string } {
	return []struct{ phrase, means, try string }{
		{"volume node affinity conflict", "its volume is tied to a node or zone to which it cannot go",
			"see where the volume is: kubectl get pv -o yaml, nodeAffinity; a class with volumeBindingMode: WaitForFirstConsumer avoids it"},
		{"free ports", "a hostPort that it wants is taken on each node",
			"take another hostPort, or none: a Service reaches pods without"},
		{"topology spread constraints", "its topologySpreadConstraints allow no node",
			"set whenUnsatisfiable: ScheduleAnyway, or raise maxSkew"},
		{"anti-affinity rules", "its podAntiAffinity, or that of another pod, keeps it away",
			"add nodes, or make the anti-affinity preferred instead of required"},
		{"pod affinity rules", "no node that it could run on has a pod that matches its podAffinity",
			"check that the pods that it must run next to are running, and their labels"},
		{"unbound immediate PersistentVolumeClaims", "a claim of it has no volume",
			"look at its claims: kubectl get pvc"},
		{"max volume count", "nodes have as many volumes as they can take",
			"add a node, or end pods with volumes"},
		{"enough free storage",
			"the driver of its volume's class has no room for the volume on nodes that could take it",
			"see what it has: kubectl get csistoragecapacities -A; ask for less, or make room"},
		{"no nodes available", "there is no node", "look at kubectl get nodes"},
	}
}

// obstacle is why a node cannot take a pod.
type obstacle struct {
	short string // which many nodes may have in common
	says  string // with the numbers
	try   string
}

// places says of each node why the pod does not go there.
func (r *report) places(f *Finding) {
	if len(r.Nodes) == 0 {
		return
	}
	var shorts []string
	tries := map[string]bool{}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		all := obstacles(r.Pod, n)
		var says []string
		for _, o := range all {
			says = append(says, o.says)
			if !slices.Contains(shorts, o.short) {
				shorts = append(shorts, o.short)
			}
			if o.try != "" && !tries[o.try] {
				tries[o.try] = true
				f.Try = append(f.Try, o.try)
			}
		}
		if len(says) > 0 && i < mostNodes {
			f.fact("node "+n.Name, "%s", strings.Join(says, "; "))
		}
	}
	if more := len(r.Nodes) - mostNodes; more > 0 {
		f.fact("nodes", "and %d more nodes", more)
	}
	if len(shorts) > 0 {
		f.What += ": " + strings.Join(shorts, ", ")
	}
	r.larger(f)
}

// larger says so if what the pod asks for is more than any node has at all.
func (r *report) larger(f *Finding) {
	for _, name := range sortedNames(podspec.EffectiveRequests(r.Pod)) {
		need := podspec.EffectiveRequests(r.Pod)[name]
		var most resource.Quantity
		for i := range r.Nodes {
			if q := r.Nodes[i].Allocatable[name]; q.Cmp(most) > 0 {
				most = q
			}
		}
		if need.Cmp(most) <= 0 {
			continue
		}
		if most.IsZero() {
			f.try("no node offers any %s: look whether its device plug-in or driver runs", name)
			continue
		}
		f.try("ask for less %s: the largest node has %s in all", name, quantity(name, most))
	}
}

// obstacles are the reasons for which a pod cannot go to a node.
func obstacles(pod *corev1.Pod, n *Node) (all []obstacle) {
	if n.Unschedulable && !podspec.Tolerates(pod, corev1.Taint{Key: corev1.TaintNodeUnschedulable,
		Effect: corev1.TaintEffectNoSchedule}) {
		all = append(all, obstacle{"a node is cordoned", "it takes no new pods (spec.unschedulable)",
			"kubectl uncordon " + n.Name + ", if it is to take pods again"})
	}
	for _, t := range n.Taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule || t.Key == corev1.TaintNodeUnschedulable ||
			podspec.Tolerates(pod, t) {
			continue
		}
		mark := t.ToString()
		o := obstacle{short: "taint " + mark + " is not tolerated",
			says: "it has taint " + mark + ", which the pod does not tolerate"}
		if strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			o.try = "see to the node: the taint says that it is not well (kubectl describe node " + n.Name + ")"
		} else {
			o.try = fmt.Sprintf("add a toleration for it to the pod (key: %s, effect: %s), or take the taint away: kubectl taint node %s %s:%s-",
				t.Key, t.Effect, n.Name, t.Key, t.Effect)
		}
		all = append(all, o)
	}
	all = append(all, selection(pod, n)...)
	return append(all, room(pod, n)...)
}

// selection is what a pod wants of a node's labels.
func selection(pod *corev1.Pod, n *Node) (all []obstacle) {
	keys := make([]string, 0, len(pod.Spec.NodeSelector))
	for key := range pod.Spec.NodeSelector {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		want := pod.Spec.NodeSelector[key]
		have, ok := n.Labels[key]
		if ok && have == want {
			continue
		}
		o := obstacle{short: "no node has label " + key + "=" + want, says: "it has no label " + key,
			try: fmt.Sprintf("correct nodeSelector, or label a node: kubectl label node %s %s=%s", n.Name, key, want)}
		if ok {
			o.says = fmt.Sprintf("its label %s is %s, not %s", key, have, want)
		}
		all = append(all, o)
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil || len(all) > 0 {
		return all
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err == nil && !ok {
		all = append(all, obstacle{"the required node affinity fits no node",
			"the pod's required node affinity does not fit its labels",
			"correct spec.affinity.nodeAffinity, or label a node: kubectl get nodes --show-labels"})
	}
	return all
}

// room is what of the pod's requests a node has not left.
func room(pod *corev1.Pod, n *Node) (all []obstacle) {
	requests := podspec.EffectiveRequests(pod)
	for _, name := range sortedNames(requests) {
		need, have := requests[name], n.Allocatable[name]
		if need.Sign() <= 0 || n.Allocatable == nil {
			continue
		}
		free := have.DeepCopy()
		if n.Requested != nil {
			free.Sub(n.Requested[name])
		}
		if need.Cmp(free) <= 0 {
			continue
		}
		o := obstacle{short: "too little " + string(name), says: fmt.Sprintf("%s: asked for %s, %s", name,
			quantity(name, need), left(name, free, have, n.Requested != nil))}
		if need.Cmp(have) <= 0 {
			o.try = fmt.Sprintf("ask for less %s, end pods that ask for much, or add a node", name)
		}
		all = append(all, o)
	}
	if most, ok := n.Allocatable[corev1.ResourcePods]; ok && n.Requested != nil && int64(n.Pods+1) > most.Value() {
		all = append(all, obstacle{"too many pods", fmt.Sprintf("it has %d pods, of %d", n.Pods, most.Value()),
			"end pods, add a node, or raise the node's number of pods"})
	}
	return all
}

func left(name corev1.ResourceName, free, have resource.Quantity, known bool) string {
	if !known {
		return "it has " + quantity(name, have) + " in all"
	}
	return quantity(name, free) + " free of " + quantity(name, have)
}

// quantity is an amount as people write it: 1.9 CPUs as 1900m, bytes in Mi.
func quantity(name corev1.ResourceName, q resource.Quantity) string {
	if name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage || q.Value() < 1<<20 {
		return q.String()
	}
	return resource.NewQuantity(q.Value()>>20<<20, resource.BinarySI).String()
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	names := make([]corev1.ResourceName, 0, len(list))
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
