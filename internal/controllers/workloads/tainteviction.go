// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/controller/tainteviction"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// taintEviction ends pods on nodes that have a taint NoExecute which they do not tolerate, or no longer.
func taintEviction() ondemand.Controller {
	const name = "taint-eviction-controller"
	return ondemand.Controller{
		Name:   name,
		Starts: []ondemand.Start{evictingNode()},
		Code:   code + "tainteviction",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			core := k.Informers.Core().V1()
			c, err := tainteviction.New(ctx, k.Client, core.Pods(), core.Nodes(), name)
			if err != nil {
				return nil, err
			}
			return c.Run, nil
		},
	}
}

// evictingNode is a node with a taint that drives pods away.
func evictingNode() ondemand.Start {
	evicts := func(n *corev1.Node) bool {
		return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute })
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
