// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"strconv"

	"github.com/go-logr/logr"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Follower receives every object of a kind, in the order in which they were written.
type Follower interface {
	cache.ReflectorStore
	cache.ReflectorBookmarkStore
}

// Follow sends the objects of a kind to a follower, straight from the store, until ctx is done: first all that is
// there, then every change, also those of other servers on the same etcd. What was missed while etcd was away is told
// by another whole list.
func (r *REST) Follow(ctx context.Context, to Follower) {
	reflector := cache.NewReflectorWithOptions(storeWatch{r}, r.New(), to, cache.ReflectorOptions{Name: r.Kind.Plural})
	reflector.RunWithContext(klog.NewContext(ctx, logr.Discard())) // every request that fails meanwhile says so
}

// storeWatch gives the library's reflector a kind's storage for a client.
type storeWatch struct{ rest *REST }

var (
	_ cache.ListerWatcher            = storeWatch{}
	_ cache.ListerWatcherWithContext = storeWatch{}
)

// List implements cache.ListerWatcher.
func (w storeWatch) List(o metav1.ListOptions) (runtime.Object, error) {
	return w.ListWithContext(context.Background(), o)
}

// Watch implements cache.ListerWatcher.
func (w storeWatch) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return w.WatchWithContext(context.Background(), o)
}

// ListWithContext implements cache.ListerWatcherWithContext.
func (w storeWatch) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	options, err := internalOptions(&o)
	if err != nil {
		return nil, err
	}
	return w.rest.List(w.rest.Within(ctx, ""), options)
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (w storeWatch) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	options, err := internalOptions(&o)
	if err != nil {
		return nil, err
	}
	return w.rest.Watch(w.rest.Within(ctx, ""), options)
}

// IsWatchListSemanticsUnSupported has the reflector begin with a list, which needs no bookmark of etcd to end.
func (storeWatch) IsWatchListSemanticsUnSupported() bool { return true }

func internalOptions(o *metav1.ListOptions) (*metainternal.ListOptions, error) {
	out := &metainternal.ListOptions{}
	err := metainternal.Convert_v1_ListOptions_To_internalversion_ListOptions(o, out, nil)
	return out, err
}

// VersionOf is the resource version as the number that etcd has for it; 0 if it is none.
func VersionOf(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
