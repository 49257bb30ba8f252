// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/podspec"
)

// byNode is the index of the agents' pods.
const byNode = "node"

// agents knows the agents' pods, which are in the API's own namespace: of no other it reads lists.
type agents struct {
	namespace, selector string
	factory             informers.SharedInformerFactory
	pods                cache.SharedIndexInformer

	mu      sync.Mutex
	changed chan struct{}        // closed, and another one made, when something has become of a pod
	left    map[string]time.Time // by node: when its last agent went; those of late
}

const (
	// readyTime is how long an agent that is there may take to be ready: one that is replaced takes seconds.
	readyTime = 10 * time.Second
	// replacedTime is for how long a node of which the agent has gone is one where another is to come.
	replacedTime = 30 * time.Second
)

func newAgents(client kubernetes.Interface, namespace, selector string) (*agents, error) {
	a := &agents{namespace: namespace, selector: selector, changed: make(chan struct{}),
		left: map[string]time.Time{}}
	a.factory = informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }))
	a.pods = a.factory.Core().V1().Pods().Informer()
	if _, err := a.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { a.wake("") },
		UpdateFunc: func(any, any) { a.wake("") }, DeleteFunc: a.gone}); err != nil {
		return nil, err
	}
	return a, a.pods.AddIndexers(cache.Indexers{byNode: func(obj any) ([]string, error) {
		if pod, ok := obj.(*corev1.Pod); ok {
			return []string{pod.Spec.NodeName}, nil
		}
		return nil, nil
	}})
}

// run follows the pods until ctx is done; it returns when they are known.
func (a *agents) run(ctx context.Context) error {
	a.factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), a.pods.HasSynced) {
		return fmt.Errorf("the agents' pods in namespace %s cannot be read: %w", a.namespace, ctx.Err())
	}
	return nil
}

// wake wakes those who wait for an agent; left is the node of which one has gone, if one has.
func (a *agents) wake(left string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.changed)
	a.changed = make(chan struct{})
	if left != "" {
		maps.DeleteFunc(a.left, func(_ string, at time.Time) bool { return time.Since(at) > replacedTime })
		a.left[left] = time.Now()
	}
}

func (a *agents) gone(obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		a.wake(pod.Spec.NodeName)
	}
}

// replaced reports whether an agent has gone from a node a moment ago.
func (a *agents) replaced(node string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, is := a.left[node]
	return is && time.Since(at) < replacedTime
}

func (a *agents) next() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

// of is the agent for a pod: its node's. One that is to be there and is not ready is waited for, but not longer than
// patience.
func (a *agents) of(ctx context.Context, pod *corev1.Pod, patience time.Duration) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	node := pod.Spec.NodeName
	for {
		next := a.next()
		here, err := a.on(node)
		if err != nil {
			return nil, err
		}
		if agent := choose(here); agent != nil {
			return agent, nil
		}
		if len(here) == 0 && !a.replaced(node) {
			return nil, refusal(http.StatusNotFound, wire.ReasonNoAgent, pod.Name,
				"no agent runs on node %s, where pod %s is: there is no pod with the label %s in namespace %s on that node; kubectl debug and wherry debug do without one by an ephemeral container",
				node, pod.Name, a.selector, a.namespace)
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil, refusal(http.StatusServiceUnavailable, wire.ReasonAgentUnreachable, pod.Name,
				"the agent on node %s, where pod %s is, is not ready: try again in a moment; wherry cluster status, or kubectl -n %s describe pod -l %s, says why it is not",
				node, pod.Name, a.namespace, a.selector)
		}
	}
}

// on are the agents' pods of a node.
func (a *agents) on(node string) (here []*corev1.Pod, err error) {
	found, err := a.pods.GetIndexer().ByIndex(byNode, node)
	for _, obj := range found {
		if p, ok := obj.(*corev1.Pod); ok {
			here = append(here, p)
		}
	}
	return here, err
}

// choose takes the agent that can be asked: one that is ready and stays, the youngest of them.
func choose(agents []*corev1.Pod) *corev1.Pod {
	var best *corev1.Pod
	for _, p := range agents {
		if p.Status.PodIP == "" || p.DeletionTimestamp != nil || !podspec.IsTrue(&p.Status, corev1.PodReady) {
			continue
		}
		if best == nil || best.CreationTimestamp.Before(&p.CreationTimestamp) {
			best = p
		}
	}
	return best
}
