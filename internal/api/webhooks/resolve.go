// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/webhook"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/podspec"
)

// resolveTime is how long looking for a service's pod may take; the library's interface has no context.
const resolveTime = 5 * time.Second

// serviceResolver finds where a webhook that is named by its service answers: at an endpoint of the service's slices,
// or, as nothing here makes slices of a selector, at a ready pod that the service selects. It reads the store at every
// call.
type serviceResolver struct{ stores registry.Stores }

var _ webhook.ServiceResolver = serviceResolver{}

// NewServiceResolver finds services among what is stored.
func NewServiceResolver(stores registry.Stores) webhook.ServiceResolver {
	return serviceResolver{stores}
}

// ResolveEndpoint implements webhook.ServiceResolver.
func (r serviceResolver) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	ctx, cancel := context.WithTimeout(request.WithNamespace(context.Background(), namespace), resolveTime)
	defer cancel()
	svc, err := registry.Get[corev1.Service](ctx, r.stores["services"], namespace, name)
	if err != nil {
		return nil, err
	}
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		return hostURL(svc.Spec.ExternalName, port), nil
	}
	servicePort, ok := portOf(svc, port)
	if !ok {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("service %s/%s has no port %d", namespace, name, port))
	}
	slices, err := r.stores.Slices(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(slices) > 0 {
		host, err := proxy.RandomEndpoint(name, slices, servicePort.Name, corev1.IPFamilyUnknown, nil)
		if err != nil {
			return nil, err
		}
		return &url.URL{Scheme: "https", Host: host}, nil
	}
	return r.pod(ctx, svc, servicePort)
}

func (r serviceResolver) pod(ctx context.Context, svc *corev1.Service, port corev1.ServicePort) (*url.URL, error) {
	none := apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %s/%s: no ready pod matches its selector", svc.Namespace, svc.Name))
	if len(svc.Spec.Selector) == 0 {
		return nil, none
	}
	pods := r.stores["pods"]
	list,
		err := pods.List(pods.Within(ctx, svc.Namespace),
		&metainternal.ListOptions{LabelSelector: labels.SelectorFromSet(svc.Spec.Selector)})
	if err != nil {
		return nil, err
	}
	for i := range list.(*corev1.PodList).Items {
		if p := &list.(*corev1.PodList).Items[i]; servesTraffic(p) {
			if target, ok := targetPort(p, port); ok {
				return hostURL(p.Status.PodIP, target), nil
			}
		}
	}
	return nil, none
}

func servesTraffic(p *corev1.Pod) bool {
	return p.Status.PodIP != "" && p.DeletionTimestamp == nil && podspec.IsTrue(&p.Status, corev1.PodReady)
}

func portOf(svc *corev1.Service, port int32) (corev1.ServicePort, bool) {
	for _, p := range svc.Spec.Ports {
		if p.Port == port {
			return p, true
		}
	}
	return corev1.ServicePort{}, false
}

// targetPort is the port of a pod that a service's port leads to, which may go by its name.
func targetPort(p *corev1.Pod, port corev1.ServicePort) (int32, bool) {
	if port.TargetPort.Type == intstr.Int {
		if port.TargetPort.IntVal == 0 {
			return port.Port, true
		}
		return port.TargetPort.IntVal, true
	}
	for _, c := range p.Spec.Containers {
		for _, named := range c.Ports {
			if named.Name == port.TargetPort.StrVal {
				return named.ContainerPort, true
			}
		}
	}
	return 0, false
}

func hostURL(host string, port int32) *url.URL {
	return &url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(int(port)))}
}
