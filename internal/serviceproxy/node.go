// SPDX-License-Identifier: Apache-2.0

package serviceproxy

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/wherryproject/wherry/internal/controllers/loop"
)

// toBeDeleted is the taint by which the cluster autoscaler announces a node's end.
const toBeDeleted = "ToBeDeletedByClusterAutoscaler"

// nodeSeen is what matters here of the node's object.
type nodeSeen struct {
	zone     string
	eligible bool // for load balancers' traffic: it is there, and nothing is about to delete it
}

// seenOf is that of a node; nil: there is none. (Pure.)
func seenOf(n *corev1.Node) nodeSeen {
	if n == nil {
		return nodeSeen{}
	}
	return nodeSeen{zone: n.Labels[corev1.LabelTopologyZone], eligible: n.DeletionTimestamp.IsZero() &&
		!slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == toBeDeleted })}
}

// nodeTime is how long the first rules wait for the node's object. An API server that does not let it be read keeps
// nobody from being served: there is no zone then.
const nodeTime = time.Second

// nodeOnly makes informers of the node's object and no other's.
func (p *Proxy) nodeOnly() informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(p.config.Client, 0, informers.WithTransform(slimNode),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, p.config.Node).String()
		}))
}

// followNode starts to follow the node's object.
func (p *Proxy) followNode(ctx context.Context, factory informers.SharedInformerFactory) error {
	changed := func(obj any) {
		if n, ok := obj.(*corev1.Node); ok {
			p.setNode(seenOf(n))
		}
	}
	known, err := factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, obj any) { changed(obj) },
		DeleteFunc: func(obj any) {
			if _, ok := loop.Gone(obj).(*corev1.Node); ok {
				p.setNode(seenOf(nil))
			}
		},
	})
	if err != nil {
		return fmt.Errorf("service proxy: %w", err)
	}
	factory.Start(ctx.Done())
	first, cancel := context.WithTimeout(ctx, nodeTime)
	defer cancel()
	cache.WaitFor(first, "", known.HasSyncedChecker())
	return nil
}

// setNode takes in what the node's object says now.
func (p *Proxy) setNode(now nodeSeen) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.node.zone != now.zone {
		p.nudge()
	}
	p.node = now
}

// slimNode takes away what nobody here reads: nodes tell of all their images.
func slimNode(obj any) (any, error) {
	if n, ok := obj.(*corev1.Node); ok {
		n.Status, n.Annotations, n.ManagedFields = corev1.NodeStatus{}, nil, nil
	}
	return obj, nil
}
