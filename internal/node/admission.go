// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/wherryproject/wherry/internal/controllers/scheduler/fit"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/static"
)

// admission judges once of each pod that comes whether it fits beside those that are here (PL-20). That a pod was taken
// is a lasting fact: its status has a start time then, and one that was taken is not asked again, whatever has become
// of the node. So a pod that was here first is never refused for a later one.
type admission struct {
	// fetch reads the node and its pods as they are now.
	fetch func(context.Context) (*corev1.Node, []corev1.Pod, error)

	// unfit says why a pod for which there is room does not fit on this node; nil: it always does.
	unfit func(*corev1.Pod) *fit.Misfit

	opened  sync.Once
	mu      sync.Mutex
	node    *fit.Node // with the pods that count
	refused map[types.UID]*plan.Refusal
	room    preemption
	held    allocations
}

func newAdmission(fetch func(context.Context) (*corev1.Node, []corev1.Pod, error)) *admission {
	return &admission{fetch: fetch, node: fit.NewNode(nil), refused: map[types.UID]*plan.Refusal{},
		room: newPreemption(), held: allocations{pods: map[types.UID]*allocation{}}}
}

// setNode takes in the node as the API server has it.
func (a *admission) setNode(n *corev1.Node) {
	a.mu.Lock()
	a.node.Object = n
	a.mu.Unlock()
	a.grantAll()
}

// open takes in the pods that are bound to the node when the agent starts: first those that were taken before, then,
// the oldest first, those that came meanwhile.
func (a *admission) open(ctx context.Context, pods []*corev1.Pod) {
	pods = slices.SortedFunc(slices.Values(pods), func(p, q *corev1.Pod) int {
		return cmp.Or(p.CreationTimestamp.Compare(q.CreationTimestamp.Time), cmp.Compare(p.UID, q.UID))
	})
	for _, p := range pods {
		if taken(p) {
			a.resume(p)
			a.count(p)
		}
	}
	for _, p := range pods {
		a.judge(ctx, p)
	}
	a.grantAll()
}

// judge decides about a pod that has come, if it was not decided yet.
func (a *admission) judge(ctx context.Context, pod *corev1.Pod) {
	if taken(pod) || ended(&pod.Status) || pod.DeletionTimestamp != nil {
		a.count(pod)
		return
	}
	m := a.misfit(pod)
	if m != nil {
		// What is known may be older than what somebody has just changed so that the pod fits.
		if node, pods, err := a.fetch(ctx); err == nil {
			a.refresh(node, pods)
			m = a.misfit(pod)
		}
	}
	if m == nil || a.preempt(pod, m) {
		a.count(pod)
		a.await(pod)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused[pod.UID] = &plan.Refusal{Reason: m.Reason, Message: "Pod was rejected: " + m.Message}
}

// judgeStatic decides about a static pod. It does not ask the API server, which may be one of them, or not there at
// all.
func (a *admission) judgeStatic(pod *corev1.Pod) {
	if taken(pod) || ended(&pod.Status) || pod.DeletionTimestamp != nil {
		a.count(pod)
		return
	}
	if m := a.misfit(pod); m != nil && !a.preempt(pod, m) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.refused[pod.UID] = &plan.Refusal{Reason: m.Reason, Message: "Pod was rejected: " + m.Message}
		return
	}
	a.count(pod)
	a.await(pod)
}

// refresh takes in what is there now. Pods that are not known yet are still to come, and later than what is judged.
func (a *admission) refresh(node *corev1.Node, pods []corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.node.Object = node
	holds := map[types.UID]bool{}
	for i := range pods {
		holds[pods[i].UID] = !ended(&pods[i].Status)
	}
	for _, uid := range a.node.UIDs() {
		if !holds[uid] {
			a.node.Remove(uid)
		}
	}
}

// misfit says why the pod does not fit; nil too when that is decided, or nothing is known of the node.
func (a *admission) misfit(pod *corev1.Pod) *fit.Misfit {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.node.Object == nil || a.node.Has(pod.UID) || a.refused[pod.UID] != nil {
		return nil
	}
	if m := fit.Admit(pod, a.node); m != nil || a.unfit == nil {
		return m
	}
	return a.unfit(pod)
}

// refusal is what was decided about a pod.
func (a *admission) refusal(uid types.UID) *plan.Refusal {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refused[uid]
}

// count counts a pod as it is now: its requests may have changed. One that has ended holds nothing any more, one that
// was refused nothing at all.
func (a *admission) count(pod *corev1.Pod) {
	a.mu.Lock()
	freed := a.node.Has(pod.UID)
	switch {
	case ended(&pod.Status), a.room.leaves(pod.UID):
		a.node.Remove(pod.UID)
	case a.refused[pod.UID] == nil:
		a.node.Add(fit.PlaceAllocated(pod, a.allocate(pod).has.In(pod)))
		freed = false
	}
	a.mu.Unlock()
	if freed {
		a.grantAll()
	}
}

// forget drops a pod that the API server does not have any more.
func (a *admission) forget(uid types.UID) {
	a.mu.Lock()
	a.node.Remove(uid)
	delete(a.refused, uid)
	delete(a.held.pods, uid)
	a.room.forget(uid)
	a.mu.Unlock()
	a.grantAll()
}

func taken(pod *corev1.Pod) bool { return pod.Status.StartTime != nil && !ended(&pod.Status) }

func ended(s *corev1.PodStatus) bool {
	return s.Phase == corev1.PodFailed || s.Phase == corev1.PodSucceeded
}

// newNodeInformer watches this node's own object, for its labels, taints and resources.
func newNodeInformer(client kubernetes.Interface, name string) cache.SharedIndexInformer {
	lw := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "nodes", metav1.NamespaceAll,
		fields.OneTermEqualSelector("metadata.name", name))
	return cache.NewSharedIndexInformer(lw, &corev1.Node{}, 0, cache.Indexers{})
}

// nodeEvents passes changes of the node on to the admission.
func (a *Agent) nodeEvents() cache.ResourceEventHandler {
	set := func(was, o any) {
		if n, ok := o.(*corev1.Node); ok {
			before, _ := was.(*corev1.Node)
			a.admission.setNode(n)
			a.csi.NodeChanged(before, n)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: func(o any) { set(nil, o) }, UpdateFunc: set}
}

// fetchAdmission reads this node's own object and its pods.
func (a *Agent) fetchAdmission(ctx context.Context) (*corev1.Node, []corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	node, err := a.cfg.Client.CoreV1().Nodes().Get(ctx, a.cfg.NodeName, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	list, err := a.cfg.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: ofNode(a.cfg.NodeName).String()})
	if err != nil {
		return nil, nil, err
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return static.IsMirror(&p) })
	for _, p := range a.statics.Pods() {
		pods = append(pods, *p)
	}
	return node, pods, nil
}

// arrived judges a pod, with the first one all that are there.
func (a *Agent) arrived(ctx context.Context, pod *corev1.Pod) {
	a.admission.opened.Do(func() {
		if !cache.WaitFor(ctx, "", a.pods.HasSyncedChecker()) {
			return // the agent ends
		}
		pods := slices.DeleteFunc(a.listed(), static.IsMirror)
		for _, p := range pods {
			a.vacate(p)
		}
		a.admission.open(ctx, pods)
	})
	a.admission.judge(ctx, pod)
}
