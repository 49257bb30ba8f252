// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/controller/endpointslice"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// endpointsPerSlice is Kubernetes' default.
const endpointsPerSlice = 100

// endpointSlices keeps the EndpointSlices of Services that select pods.
func endpointSlices() ondemand.Controller {
	return ondemand.Controller{
		Name:   "endpointslice-controller",
		Starts: []ondemand.Start{selectingService()},
		Code:   code + "endpointslice",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			core := k.Informers.Core().V1()
			c := endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(),
				k.Informers.Discovery().V1().EndpointSlices(), endpointsPerSlice, k.Client, 0)
			return func(ctx context.Context) { c.Run(ctx, workers) }, nil
		},
	}
}

// selectingService is a Service that selects pods: unlike service kubernetes, which every server has.
func selectingService() ondemand.Start {
	return ondemand.Start{
		Kind: corev1.SchemeGroupVersion.WithResource("services"),
		If: func(_ schema.GroupResource, obj runtime.Object) bool {
			s, ok := obj.(*corev1.Service)
			return !ok || len(s.Spec.Selector) > 0 // another type has to be looked at by the controller
		},
		There: func(ctx context.Context, l ondemand.Looking) (bool, error) {
			list, err := l.Client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			for i := range list.Items {
				if len(list.Items[i].Spec.Selector) > 0 {
					return true, nil
				}
			}
			return false, nil
		},
	}
}
