// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/controllers/loop"
)

const (
	// Quarantine is how long a node must have been gone before its pods are.
	Quarantine = 40 * time.Second
	// DefaultThreshold is how many ended pods may lie about, as in Kubernetes.
	DefaultThreshold = 12500

	// The queue holds names of nodes behind this prefix, and this word.
	nodePrefix = "node/"
	endedKey   = "ended"
)

// Controller collects pods.
type Controller struct {
	client    kubernetes.Interface
	log       *slog.Logger
	loop      *loop.Loop
	pods      corelisters.PodLister
	nodes     corelisters.NodeLister
	threshold int

	mu    sync.Mutex
	ended map[types.UID]bool     // pods that have ended
	since map[string]time.Time   // when a node was first missed
	loose map[string]*corev1.Pod // deleted pods without a node, by queue name
}

// New makes the controller; threshold is how many ended pods are kept. The caller starts the factory's informers.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, log *slog.Logger,
	threshold int) *Controller {
	c := &Controller{
		client: client, log: log, threshold: threshold,
		ended: map[types.UID]bool{}, since: map[string]time.Time{}, loose: map[string]*corev1.Pod{},
	}
	c.loop = loop.New("podgc", log, c.sync)
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	c.pods, c.nodes = pods.Lister(), nodes.Lister()
	c.loop.Watch(nodes.Informer(), func(obj any) { c.loop.Add(nodePrefix + obj.(*corev1.Node).Name) })
	c.loop.Watch(pods.Informer(), func(obj any) { c.seen(obj.(*corev1.Pod)) })
	return c
}

// Run works until ctx is done. It is called once.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// seen looks at a pod that came, changed or went.
func (c *Controller) seen(pod *corev1.Pod) {
	if now, err := c.pods.Pods(pod.Namespace).Get(pod.Name); err != nil || now.UID != pod.UID {
		c.mu.Lock()
		delete(c.ended, pod.UID)
		c.mu.Unlock()
		return
	}
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		c.mu.Lock()
		c.ended[pod.UID] = true
		tooMany := len(c.ended) > c.threshold
		c.mu.Unlock()
		if tooMany {
			c.loop.Add(endedKey)
		}
	case pod.Spec.NodeName == "" && pod.DeletionTimestamp != nil:
		key := pod.Namespace + "/" + pod.Name
		c.mu.Lock()
		c.loose[key] = pod
		c.mu.Unlock()
		c.loop.Add(key)
	}
	if pod.Spec.NodeName != "" {
		if _, err := c.nodes.Get(pod.Spec.NodeName); apierrors.IsNotFound(err) {
			c.loop.Add(nodePrefix + pod.Spec.NodeName)
		}
	}
}

func (c *Controller) sync(ctx context.Context, name string) error {
	if node, ok := cutNode(name); ok {
		return c.syncNode(ctx, node)
	}
	if name == endedKey {
		return c.trim(ctx)
	}
	c.mu.Lock()
	pod := c.loose[name]
	delete(c.loose, name)
	c.mu.Unlock()
	if pod == nil {
		return nil
	}
	return c.remove(ctx, pod, "it was deleted before it had a node")
}

func cutNode(name string) (string, bool) {
	if len(name) > len(nodePrefix) && name[:len(nodePrefix)] == nodePrefix {
		return name[len(nodePrefix):], true
	}
	return "", false
}

// syncNode deletes the pods of a node that has been gone for the quarantine.
func (c *Controller) syncNode(ctx context.Context, name string) error {
	if _, err := c.nodes.Get(name); err == nil {
		c.forget(name)
		return nil
	}
	orphans, err := c.onNode(name)
	if err != nil || len(orphans) == 0 {
		c.forget(name)
		return err
	}
	if wait := c.missed(name, time.Now()); wait > 0 {
		return loop.Later{After: wait, Why: "node " + name + " is in quarantine"}
	}
	if _, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); err == nil {
		c.forget(name)
		return nil
	} else if !apierrors.IsNotFound(err) {
		return err
	}
	for _, pod := range orphans {
		if err := c.markLost(ctx, pod); err != nil {
			return err
		}
		if err := c.remove(ctx, pod, "its node is gone"); err != nil {
			return err
		}
	}
	c.forget(name)
	return nil
}

func (c *Controller) onNode(name string) ([]*corev1.Pod, error) {
	pods, err := c.pods.List(labels.Everything())
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p.Spec.NodeName != name }), err
}

// missed notes that a node is missing and says how much of the quarantine is left.
func (c *Controller) missed(name string, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.since[name]; !ok {
		c.since[name] = now
	}
	return c.since[name].Add(Quarantine).Sub(now)
}

func (c *Controller) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.since, name)
}

// trim deletes the oldest ended pods above the threshold.
func (c *Controller) trim(ctx context.Context) error {
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		return err
	}
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool {
		return p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
	})
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, pod := range pods[:max(len(pods)-c.threshold, 0)] {
		if err := c.remove(ctx, pod, "there are too many terminated pods"); err != nil {
			return err
		}
	}
	return nil
}

// markLost ends a pod whose node is gone, so that whoever waits for it learns why (PL-01, DisruptionTarget).
func (c *Controller) markLost(ctx context.Context, pod *corev1.Pod) error {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"phase": corev1.PodFailed, "conditions": []any{map[string]any{
			"type": corev1.DisruptionTarget, "status": corev1.ConditionTrue, "reason": "DeletionByPodGC",
			"message": "PodGC: node no longer exists", "lastTransitionTime": metav1.Now(),
			"observedGeneration": pod.Generation,
		}}},
	})
	if err != nil {
		return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	_, err = c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	return ignoreGone(err)
}

// remove deletes a pod without grace: there is nobody who would use it.
func (c *Controller) remove(ctx context.Context, pod *corev1.Pod, why string) error {
	c.log.Info("deleting pod", "pod", pod.Namespace+"/"+pod.Name, "reason", why)
	return ignoreGone(c.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	}))
}

// ignoreGone: a pod that is gone, or another one by now, needs nothing.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
