// SPDX-License-Identifier: Apache-2.0

package registry

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

// Stores are the opened kinds by plural name.
type Stores map[string]*REST

// OpenStores connects every kind to etcd, all at once: to one in another process each has a connection of its own.
func OpenStores(b *Backend, table []*Kind) (Stores, error) {
	type opened struct {
		rest *REST
		err  error
	}
	results := make(chan opened, len(table))
	for _, k := range table {
		go func() {
			r, err := b.open(k)
			results <- opened{r, err}
		}()
	}
	all := Stores{}
	var errs []error
	for range table {
		r := <-results
		if r.err != nil {
			errs = append(errs, r.err)
			continue
		}
		all[r.rest.Kind.Plural] = r.rest
	}
	if len(errs) > 0 {
		all.Close()
		return nil, fmt.Errorf("connect to etcd: %w", errors.Join(errs...))
	}
	return all, nil
}

// Close closes the connections of all kinds.
func (s Stores) Close() {
	for _, r := range s {
		r.DestroyFunc()
	}
}

// Within is ctx as if a request for this kind had come: the library names the resource in its errors from there.
func (r *REST) Within(ctx context.Context, namespace string) context.Context {
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, APIGroup: r.Kind.GV.Group, APIVersion: r.Kind.GV.Version, Resource: r.Kind.Plural,
		Namespace: namespace,
	})
	return request.WithNamespace(ctx, namespace)
}

// Get reads one object straight from the store.
func Get[T any](ctx context.Context, r *REST, namespace, name string) (*T, error) {
	// nothing can be called so; the store would say that the request is bad
	if len(path.IsValidPathSegmentName(name)) > 0 {
		return nil, apierrors.NewNotFound(r.Kind.Resource(), name)
	}
	obj, err := r.Get(r.Within(ctx, namespace), name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	t, ok := any(obj).(*T)
	if !ok {
		return nil, fmt.Errorf("the store of %s returned a %T", r.Kind.Plural, obj)
	}
	return t, nil
}

// Namespace reads a namespace straight from the store.
func (s Stores) Namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	return Get[corev1.Namespace](ctx, s["namespaces"], "", name)
}

// ServiceAccount reads a service account straight from the store.
func (s Stores) ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return Get[corev1.ServiceAccount](ctx, s["serviceaccounts"], namespace, name)
}

// Pod reads a pod straight from the store.
func (s Stores) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return Get[corev1.Pod](ctx, s["pods"], namespace, name)
}

// Secret reads a Secret straight from the store.
func (s Stores) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return Get[corev1.Secret](ctx, s["secrets"], namespace, name)
}

// Node reads a node straight from the store.
func (s Stores) Node(ctx context.Context, name string) (*corev1.Node, error) {
	return Get[corev1.Node](ctx, s["nodes"], "", name)
}

// Slices lists the endpoint slices of a service; the namespace is in the context.
func (s Stores) Slices(ctx context.Context, service string) ([]*discoveryv1.EndpointSlice, error) {
	r := s["endpointslices"]
	list, err := r.List(r.Within(ctx, request.NamespaceValue(ctx)), &metainternal.ListOptions{
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
