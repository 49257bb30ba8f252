// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/controller/endpointslicemirroring"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// endpointsPerMirror is how many endpoints of a subset are mirrored, by Kubernetes' default.
const endpointsPerMirror = 1000

// mirroredEndpoints makes EndpointSlices of the Endpoints that somebody keeps for a Service without a selector: slices
// alone are what services are carried by.
func mirroredEndpoints() ondemand.Controller {
	return ondemand.Controller{
		Name:   "endpointslicemirroring-controller",
		Starts: []ondemand.Start{endpointsToMirror()},
		Code:   code + "endpointslicemirroring",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			core := k.Informers.Core().V1()
			c := endpointslicemirroring.NewController(ctx, core.Endpoints(),
				k.Informers.Discovery().V1().EndpointSlices(), core.Services(), endpointsPerMirror, k.Client, 0)
			return func(ctx context.Context) { c.Run(ctx, workers) }, nil
		},
	}
}

// endpointsToMirror are Endpoints that do not say that they are not to be mirrored, as those of service kubernetes do.
func endpointsToMirror() ondemand.Start {
	mirrored := func(e *corev1.Endpoints) bool { return e.Labels[discoveryv1.LabelSkipMirror] != "true" }
	return ondemand.Start{
		Kind: corev1.SchemeGroupVersion.WithResource("endpoints"),
		If: func(_ schema.GroupResource, obj runtime.Object) bool {
			e, ok := obj.(*corev1.Endpoints)
			return !ok || mirrored(e)
		},
		There: func(ctx context.Context, l ondemand.Looking) (bool, error) {
			list, err := l.Client.CoreV1().Endpoints("").List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			for i := range list.Items {
				if mirrored(&list.Items[i]) {
					return true, nil
				}
			}
			return false, nil
		},
	}
}
