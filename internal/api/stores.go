// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// stores are the opened kinds by plural name.
type stores map[string]*kindREST

// openStores connects every kind to etcd, all at once: each has a connection of its own.
func openStores(b *backend, table []*kind) (stores, error) {
	type opened struct {
		rest *kindREST
		err  error
	}
	results := make(chan opened, len(table))
	for _, k := range table {
		go func() {
			r, err := b.open(k)
			results <- opened{r, err}
		}()
	}
	all := stores{}
	var errs []error
	for range table {
		r := <-results
		if r.err != nil {
			errs = append(errs, r.err)
			continue
		}
		all[r.rest.kind.plural] = r.rest
	}
	if len(errs) > 0 {
		all.close()
		return nil, fmt.Errorf("connect to etcd: %w", errors.Join(errs...))
	}
	return all, nil
}

func (s stores) close() {
	for _, r := range s {
		r.DestroyFunc()
	}
}

// within is ctx as if a request for this kind had come: the library names the resource in its errors from there.
func (r *kindREST) within(ctx context.Context, namespace string) context.Context {
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, APIGroup: r.kind.gv.Group, APIVersion: r.kind.gv.Version, Resource: r.kind.plural, Namespace: namespace,
	})
	return request.WithNamespace(ctx, namespace)
}

// get reads one object straight from the store.
func get[T any](ctx context.Context, r *kindREST, namespace, name string) (*T, error) {
	if len(path.IsValidPathSegmentName(name)) > 0 { // nothing can be called so; the store would say that the request is bad
		return nil, apierrors.NewNotFound(r.kind.resource(), name)
	}
	obj, err := r.Get(r.within(ctx, namespace), name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	t, ok := any(obj).(*T)
	if !ok {
		return nil, fmt.Errorf("the store of %s returned a %T", r.kind.plural, obj)
	}
	return t, nil
}

func (s stores) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	return get[corev1.Namespace](ctx, s["namespaces"], "", name)
}

func (s stores) serviceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return get[corev1.ServiceAccount](ctx, s["serviceaccounts"], namespace, name)
}

func (s stores) pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return get[corev1.Pod](ctx, s["pods"], namespace, name)
}

func (s stores) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return get[corev1.Secret](ctx, s["secrets"], namespace, name)
}

func (s stores) node(ctx context.Context, name string) (*corev1.Node, error) {
	return get[corev1.Node](ctx, s["nodes"], "", name)
}

// slices lists the endpoint slices of a service; the namespace is in the context.
func (s stores) slices(ctx context.Context, service string) ([]*discoveryv1.EndpointSlice, error) {
	r := s["endpointslices"]
	list, err := r.List(r.within(ctx, request.NamespaceValue(ctx)), &metainternal.ListOptions{
		LabelSelector: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service}),
	})
	if err != nil {
		return nil, err
	}
	var found []*discoveryv1.EndpointSlice
	for i := range list.(*discoveryv1.EndpointSliceList).Items {
		found = append(found, &list.(*discoveryv1.EndpointSliceList).Items[i])
	}
	return found, nil
}
