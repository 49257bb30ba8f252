// SPDX-License-Identifier: Apache-2.0

package node

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// serviceCache knows all services, for the variables that containers get of them (PL-06).
type serviceCache struct{ cache.SharedIndexInformer }

func newServiceCache(client kubernetes.Interface) serviceCache {
	lw := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "services", metav1.NamespaceAll,
		fields.Everything())
	return serviceCache{cache.NewSharedIndexInformer(lw, &corev1.Service{}, 0, cache.Indexers{})}
}

func (s serviceCache) list() (out []*corev1.Service) {
	if s.SharedIndexInformer == nil { // without an API server there are none
		return nil
	}
	for _, o := range s.GetStore().List() {
		if svc, ok := o.(*corev1.Service); ok {
			out = append(out, svc)
		}
	}
	return out
}

// services lists services for package ops.
func (a *Agent) services() []*corev1.Service { return a.serviceCache.list() }
