// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
	"github.com/wherryproject/wherry/internal/controllers/tainteviction"
)

// taintEviction ends pods on nodes that have a taint NoExecute which they do not tolerate, or no longer. It is ours:
// Kubernetes' own is linked with its node agent.
func taintEviction() ondemand.Controller {
	return ondemand.Controller{
		Name:   tainteviction.Name,
		Starts: []ondemand.Start{evictingNode()},
		Code:   "github.com/wherryproject/wherry/internal/controllers/tainteviction",
		New: func(_ context.Context, k *ondemand.Kit) (func(context.Context), error) {
			c := tainteviction.New(k.Client, k.Informers, k.Log)
			return func(ctx context.Context) {
				if err := c.Run(ctx); err != nil {
					k.Log.Error("controller cannot run", "err", err)
				}
			}, nil
		},
	}
}

// evictingNode is a node with a taint that drives pods away.
func evictingNode() ondemand.Start {
	evicts := func(n *corev1.Node) bool {
		return slices.ContainsFunc(n.Spec.Taints,
			func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute })
	}
	return ondemand.Start{
		Kind: corev1.SchemeGroupVersion.WithResource("nodes"),
		If: func(_ schema.GroupResource, obj runtime.Object) bool {
			n, ok := obj.(*corev1.Node)
			return !ok || evicts(n)
		},
		There: func(ctx context.Context, l ondemand.Looking) (bool, error) {
			list, err := l.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			return slices.ContainsFunc(list.Items, func(n corev1.Node) bool { return evicts(&n) }), nil
		},
	}
}
