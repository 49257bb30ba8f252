// SPDX-License-Identifier: Apache-2.0

package tainteviction

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/wherryproject/wherry/internal/controllers/loop"
)

// Name is the controller's, in logs and conditions.
const Name = "taint-eviction-controller"

// Controller applies Decide to every pod that has a node.
type Controller struct {
	client kubernetes.Interface
	log    *slog.Logger
	loop   *loop.Loop
	pods   corelisters.PodLister
	nodes  corelisters.NodeLister

	mu     sync.Mutex
	taints map[string][]corev1.Taint // of nodes, as they were when their pods were last looked at
	since  map[types.UID]time.Time   // pods that tolerate taints for a while: from when on
}

// New makes the controller; the caller starts the factory's informers.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, log *slog.Logger) *Controller {
	c := &Controller{client: client, log: log, taints: map[string][]corev1.Taint{}, since: map[types.UID]time.Time{}}
	c.loop = loop.New(Name, log, c.sync)
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	c.pods, c.nodes = pods.Lister(), nodes.Lister()
	c.loop.Watch(nodes.Informer(), func(obj any) { c.seen(obj.(*corev1.Node)) })
	c.loop.Watch(pods.Informer(), func(obj any) { c.seenPod(obj.(*corev1.Pod)) })
	return c
}

// Run works until ctx is done. It is called once.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// seen has a node's pods looked at if its taints are others than before; most updates of a node are signs of life.
func (c *Controller) seen(node *corev1.Node) {
	c.mu.Lock()
	same := equality.Semantic.DeepEqual(c.taints[node.Name], node.Spec.Taints)
	c.taints[node.Name] = node.Spec.Taints
	c.mu.Unlock()
	if same {
		return
	}
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		c.log.Warn("cannot list the pods of a node", "node", node.Name, "err", err)
		return
	}
	for _, p := range pods {
		if p.Spec.NodeName == node.Name {
			c.loop.Add(p.Namespace + "/" + p.Name)
		}
	}
}

// seenPod has a pod looked at that has a node, or had to go.
func (c *Controller) seenPod(pod *corev1.Pod) {
	if pod.Spec.NodeName != "" {
		c.loop.Add(pod.Namespace + "/" + pod.Name)
	}
	if now, err := c.pods.Pods(pod.Namespace).Get(pod.Name); err != nil || now.UID != pod.UID {
		c.forget(pod)
	}
}

func (c *Controller) forget(pod *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.since, pod.UID)
}

// waited is for how long a pod has had to tolerate taints by now.
func (c *Controller) waited(pod *corev1.Pod, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.since[pod.UID]
	if !ok {
		since = now
		c.since[pod.UID] = now
	}
	return now.Sub(since)
}

func (c *Controller) sync(ctx context.Context, name string) error {
	namespace, name, _ := strings.Cut(name, "/")
	pod, err := c.pods.Pods(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
		return nil
	}
	node, err := c.nodes.Get(pod.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		return nil // its pods are the pod garbage collector's
	} else if err != nil {
		return err
	}
	d := Decide(pod, node.Spec.Taints)
	if !d.Goes {
		c.forget(pod)
		return nil
	}
	if left := d.After - c.waited(pod, time.Now()); left > 0 {
		return loop.Later{After: left, Why: "the pod tolerates its node's taints still"}
	}
	return c.evict(ctx, pod)
}

// evict records at the pod why it goes, and deletes it.
func (c *Controller) evict(ctx context.Context, pod *corev1.Pod) error {
	c.log.Info("pod goes: its node has a taint that it does not tolerate", "pod", pod.Namespace+"/"+pod.Name,
		"node", pod.Spec.NodeName)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": corev1.DisruptionTarget, "status": corev1.ConditionTrue, "reason": "DeletionByTaintManager",
			"message": "Taint manager: deleting due to NoExecute taint", "lastTransitionTime": metav1.Now(),
			"observedGeneration": pod.Generation,
		}}},
	})
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	if err == nil {
		err = c.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is another pod by now
	}
	return err
}
