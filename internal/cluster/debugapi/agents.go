// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"context"
	"fmt"
	"net/http"

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
}

func newAgents(client kubernetes.Interface, namespace, selector string) (*agents, error) {
	a := &agents{namespace: namespace, selector: selector}
	a.factory = informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }))
	a.pods = a.factory.Core().V1().Pods().Informer()
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

// of is the agent for a pod: its node's.
func (a *agents) of(pod *corev1.Pod) (*corev1.Pod, error) {
	node := pod.Spec.NodeName
	found, err := a.pods.GetIndexer().ByIndex(byNode, node)
	if err != nil {
		return nil, err
	}
	var here []*corev1.Pod
	for _, obj := range found {
		if p, ok := obj.(*corev1.Pod); ok {
			here = append(here, p)
		}
	}
	if agent := choose(here); agent != nil {
		return agent, nil
	}
	if len(here) == 0 {
		return nil, refusal(http.StatusNotFound, wire.ReasonNoAgent, pod.Name,
			"no agent runs on node %s, where pod %s is: there is no pod with the label %s in namespace %s on that node; kubectl debug and wherry debug do without one by an ephemeral container",
			node, pod.Name, a.selector, a.namespace)
	}
	return nil, refusal(http.StatusServiceUnavailable, wire.ReasonNoAgent, pod.Name,
		"the agent on node %s, where pod %s is, is not ready: kubectl -n %s get pod %s says why", node, pod.Name,
		a.namespace, here[0].Name)
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
