// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"context"
	"log/slog"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/wherryproject/wherry/internal/controllers/loop"
)

// Grace is how long a node may be silent.
const Grace = 40 * time.Second

// Controller watches over nodes.
type Controller struct {
	client kubernetes.Interface
	log    *slog.Logger
	loop   *loop.Loop
	own    informers.SharedInformerFactory // the leases of nodes
	nodes  corelisters.NodeLister

	mu    sync.Mutex
	heard map[string]sign
}

// sign is the last sign of life of a node: what it was, in its own object and in its lease, and when this process saw
// it. What is new is what differs: the stamps are of the node's clock, which may be set back.
type sign struct {
	stamps [2]time.Time
	at     time.Time
}

// Where a node's signs of life are.
const (
	inObject = iota
	inLease
)

// New makes the controller; the caller starts the factory's informers.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, log *slog.Logger) *Controller {
	c := &Controller{
		client: client, log: log, heard: map[string]sign{},
		own: informers.NewSharedInformerFactoryWithOptions(client, 0,
			informers.WithNamespace(corev1.NamespaceNodeLease)),
	}
	c.loop = loop.New("nodelifecycle", log, c.sync)
	nodes := factory.Core().V1().Nodes()
	c.nodes = nodes.Lister()
	c.loop.Watch(nodes.Informer(), func(obj any) { c.seen(obj.(*corev1.Node)) })
	c.loop.Watch(c.own.Coordination().V1().Leases().Informer(),
		func(obj any) { c.renewed(obj.(*coordinationv1.Lease)) })
	return c
}

// Run works until ctx is done. It is called once.
func (c *Controller) Run(ctx context.Context) error {
	c.own.Start(ctx.Done())
	defer c.own.Shutdown()
	return c.loop.Run(ctx)
}

// seen takes up a node that came, changed or went; what its agent writes is a sign of life too.
func (c *Controller) seen(node *corev1.Node) {
	for _, cond := range node.Status.Conditions {
		if cond.Type == corev1.NodeReady && cond.Status != corev1.ConditionUnknown {
			c.sign(node.Name, inObject, cond.LastHeartbeatTime.Time)
		}
	}
	c.loop.Add(node.Name)
}

// renewed wakes nobody: silence is noticed by the time at which it would be too long.
func (c *Controller) renewed(lease *coordinationv1.Lease) {
	if lease.Spec.RenewTime != nil {
		c.sign(lease.Name, inLease, lease.Spec.RenewTime.Time)
	}
}

// sign notes a sign of life, if it is a new one.
func (c *Controller) sign(node string, where int, stamp time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := c.heard[node]; !ok || !stamp.Equal(last.stamps[where]) {
		last.stamps[where], last.at = stamp, time.Now()
		c.heard[node] = last
	}
}

// patience says how long the node may stay silent from now; not positive when that was too long already.
func (c *Controller) patience(node string, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, ok := c.heard[node]
	if !ok {
		last = sign{at: now} // from now on
		c.heard[node] = last
	}
	return last.at.Add(Grace).Sub(now)
}

func (c *Controller) sync(ctx context.Context, name string) error {
	node, err := c.nodes.Get(name)
	if apierrors.IsNotFound(err) {
		c.mu.Lock()
		delete(c.heard, name)
		c.mu.Unlock()
		return nil
	} else if err != nil {
		return err
	}
	wait := c.patience(name, time.Now())
	if wait <= 0 {
		if node, err = c.declareUnknown(ctx, node); err != nil {
			return gone(err)
		}
	}
	if wanted := Wanted(node); !equality.Semantic.DeepEqual(wanted, node.Spec.Taints) {
		updated := node.DeepCopy()
		updated.Spec.Taints = wanted
		if _, err := c.client.CoreV1().Nodes().Update(ctx, updated, metav1.UpdateOptions{}); err != nil {
			return gone(err)
		}
	}
	if wait > 0 {
		return loop.Later{After: wait, Why: "node " + name + " is alive"}
	}
	// The agent's next status update wakes this loop: it sets Ready itself.
	return nil
}

// declareUnknown says of every condition that the node's agent reports that nobody knows it any more.
func (c *Controller) declareUnknown(ctx context.Context, node *corev1.Node) (*corev1.Node, error) {
	updated := node.DeepCopy()
	now := metav1.Now()
	changed := false
	reported := []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
		corev1.NodePIDPressure}
	for _, t := range reported {
		unknown := corev1.NodeCondition{
			Type: t, Status: corev1.ConditionUnknown, LastTransitionTime: now,
			Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status.",
		}
		found := false
		for i := range updated.Status.Conditions {
			have := &updated.Status.Conditions[i]
			if have.Type != t {
				continue
			}
			found = true
			if have.Status != corev1.ConditionUnknown {
				unknown.LastHeartbeatTime = have.LastHeartbeatTime
				*have, changed = unknown, true
			}
		}
		if !found {
			unknown.Reason, unknown.Message = "NodeStatusNeverUpdated", "Kubelet never posted node status."
			updated.Status.Conditions, changed = append(updated.Status.Conditions, unknown), true
		}
	}
	if !changed {
		return node, nil
	}
	c.log.Warn("node is silent", "node", node.Name, "grace", Grace)
	return c.client.CoreV1().Nodes().UpdateStatus(ctx, updated, metav1.UpdateOptions{})
}

// gone: a node that is gone or has changed meanwhile will be heard of again.
func gone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
