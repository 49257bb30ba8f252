// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// openLate is OpenStorage at the first request for the kind: a kind that nobody uses has no connection.
func (b *Backend) openLate(config *storagebackend.ConfigForResource, prefix string,
	key func(runtime.Object) (string, error), newFunc, newListFunc func() runtime.Object, attrs storage.AttrFunc,
	triggers storage.IndexerFuncs, indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	s := &lateStorage{resource: config.GroupResource.String(), open: func() (storage.Interface, factory.DestroyFunc,
		error) {
		return b.OpenStorage(config, prefix, key, newFunc, newListFunc, attrs, triggers, indexers)
	}}
	return s, s.close, nil
}

// lateStorage opens what it stands for when it is first used. It is safe for concurrent use. A kind of which somebody
// only wanted to know whether it has objects, and which has none, is closed again: at its start a server asks so of
// all.
type lateStorage struct {
	resource string
	open     func() (storage.Interface, factory.DestroyFunc, error)

	mu      sync.Mutex
	opened  storage.Interface
	free    factory.DestroyFunc
	closed  bool
	kept    bool // it has been used for more than lists
	lists   int  // being read
	emptied int  // how often it was closed because there was nothing in it
}

// glances is how often a kind may be found empty before it is left open.
const glances = 3

var _ storage.Interface = &lateStorage{}

func (s *lateStorage) get() (storage.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = true
	return s.there()
}

// there opens it if need be. The lock is held.
func (s *lateStorage) there() (storage.Interface, error) {
	if s.closed {
		return nil, apierrors.NewServiceUnavailable("the server is stopping")
	}
	if s.opened == nil {
		opened, free, err := s.open()
		if err != nil {
			return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("the store of %s cannot be reached: %v", s.resource,
				err))
		}
		s.opened, s.free = opened, free
	}
	return s.opened, nil
}

func (s *lateStorage) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.free != nil {
		s.free()
	}
	s.closed = true
}

// current is what has been opened, or nil.
func (s *lateStorage) current() storage.Interface {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// Versioner implements storage.Interface.
func (*lateStorage) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

// Create implements storage.Interface.
func (s *lateStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	to, err := s.get()
	if err != nil {
		return err
	}
	return to.Create(ctx, key, obj, out, ttl)
}

// Delete implements storage.Interface.
func (s *lateStorage) Delete(ctx context.Context, key string, out runtime.Object, p *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions) error {
	to, err := s.get()
	if err != nil {
		return err
	}
	return to.Delete(ctx, key, out, p, validate, cached, opts)
}

// Watch implements storage.Interface.
func (s *lateStorage) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	to, err := s.get()
	if err != nil {
		return nil, err
	}
	return to.Watch(ctx, key, opts)
}

// Get implements storage.Interface.
func (s *lateStorage) Get(ctx context.Context, key string, opts storage.GetOptions, into runtime.Object) error {
	to, err := s.get()
	if err != nil {
		return err
	}
	return to.Get(ctx, key, opts, into)
}

// GetList implements storage.Interface.
func (s *lateStorage) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	s.mu.Lock()
	to, err := s.there()
	s.lists++
	s.mu.Unlock()
	if err == nil {
		err = to.GetList(ctx, key, opts, list)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists--
	if err == nil && meta.LenList(list) == 0 && s.lists == 0 && !s.kept && !s.closed && s.emptied < glances {
		s.free()
		s.opened, s.free = nil, nil
		s.emptied++
	}
	return err
}

// GuaranteedUpdate implements storage.Interface.
func (s *lateStorage) GuaranteedUpdate(ctx context.Context, key string, into runtime.Object, ignoreNotFound bool,
	p *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object) error {
	to, err := s.get()
	if err != nil {
		return err
	}
	return to.GuaranteedUpdate(ctx, key, into, ignoreNotFound, p, update, cached)
}

// Stats implements storage.Interface.
func (s *lateStorage) Stats(ctx context.Context) (storage.Stats, error) {
	to, err := s.get()
	if err != nil {
		return storage.Stats{}, err
	}
	return to.Stats(ctx)
}

// ReadinessCheck implements storage.Interface: what has not been opened is ready to be.
func (s *lateStorage) ReadinessCheck() error {
	if to := s.current(); to != nil {
		return to.ReadinessCheck()
	}
	return nil
}

// RequestWatchProgress implements storage.Interface.
func (s *lateStorage) RequestWatchProgress(ctx context.Context) error {
	to, err := s.get()
	if err != nil {
		return err
	}
	return to.RequestWatchProgress(ctx)
}

// GetCurrentResourceVersion implements storage.Interface.
func (s *lateStorage) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	to, err := s.get()
	if err != nil {
		return 0, err
	}
	return to.GetCurrentResourceVersion(ctx)
}

// EnableResourceSizeEstimation implements storage.Interface.
func (s *lateStorage) EnableResourceSizeEstimation(keys storage.KeysFunc) error {
	to, err := s.get()
	if err != nil {
		return err
	}
	return to.EnableResourceSizeEstimation(keys)
}

// CompactRevision implements storage.Interface.
func (s *lateStorage) CompactRevision() int64 {
	if to := s.current(); to != nil {
		return to.CompactRevision()
	}
	return 0
}
