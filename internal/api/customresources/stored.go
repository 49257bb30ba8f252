// SPDX-License-Identifier: Apache-2.0

package customresources

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
)

// stored reads custom resources as they are in the store, in whichever version that is: quotas count them, and must not
// wait for a webhook that converts. Its methods are safe for concurrent use.
type stored struct {
	options generic.RESTOptionsGetter

	mu   sync.Mutex
	open map[schema.GroupResource]openStorage
}

type openStorage struct {
	storage.Interface
	destroy factory.DestroyFunc
}

func newStored(options generic.RESTOptionsGetter) *stored {
	return &stored{options: options, open: map[schema.GroupResource]openStorage{}}
}

// list is what a namespace has of a resource.
func (s *stored) list(ctx context.Context, r schema.GroupResource,
	namespace string) ([]unstructured.Unstructured, error) {
	in, err := s.of(r)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	err = in.GetList(ctx, fmt.Sprintf("/%s/%s/%s", r.Group, r.Resource, namespace), storage.ListOptions{
		Predicate: storage.Everything, Recursive: true}, list)
	return list.Items, err
}

func (s *stored) of(r schema.GroupResource) (storage.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in, ok := s.open[r]; ok {
		return in, nil
	}
	o, err := s.options.GetRESTOptions(r, nil)
	if err != nil {
		return nil, err
	}
	in, destroy, err := o.Decorator(o.StorageConfig, "/"+o.ResourcePrefix, nil,
		func() runtime.Object { return &unstructured.Unstructured{} },
		func() runtime.Object { return &unstructured.UnstructuredList{} }, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	s.open[r] = openStorage{in, destroy}
	return in, nil
}

func (s *stored) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r, in := range s.open {
		in.destroy()
		delete(s.open, r)
	}
}

// EachStored calls each with every custom resource of a namespace, of those kinds that are wanted.
func (r *Server) EachStored(ctx context.Context, namespace string, wanted func(schema.GroupResource) bool,
	each func(schema.GroupResource, runtime.Object)) error {
	all, err := r.namespaced(ctx)
	if err != nil {
		return err
	}
	for _, resource := range all {
		if !wanted(resource) {
			continue
		}
		items, err := r.stored.list(ctx, resource, namespace)
		if err != nil {
			return fmt.Errorf("count the %s of namespace %s: %w", resource, namespace, err)
		}
		for i := range items {
			each(resource, &items[i])
		}
	}
	return nil
}
