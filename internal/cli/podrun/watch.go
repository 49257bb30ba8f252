// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// watched is one object that is followed: who it is, and how it is read.
type watched struct {
	name  string
	uid   types.UID
	verbs verbs
}

func watchedPod(client kubernetes.Interface, pod *corev1.Pod) watched {
	v, _ := verbsFor(client, pod.Namespace, pod)
	return watched{name: pod.Name, uid: pod.UID, verbs: v}
}

// watchPod follows a pod, see follow.
func watchPod(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, version string,
	see func(*corev1.Pod) (bool, error)) error {
	return watchedPod(client, pod).follow(ctx, version, func(obj runtime.Object) (bool, error) {
		now, _ := obj.(*corev1.Pod)
		return see(now)
	})
}

// follow calls see with the object's versions after the given one (with the newest one first if that is ""), and with
// nil when it is gone or another has taken its name, until see says that it has seen enough. It survives broken
// watches.
func (w watched) follow(ctx context.Context, version string, see func(runtime.Object) (bool, error)) error {
	selector := fields.OneTermEqualSelector("metadata.name", w.name).String()
	watcher := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context,
		o metav1.ListOptions) (watch.Interface, error) {
		o.FieldSelector = selector
		return w.verbs.watch(ctx, o)
	}}
	for {
		if version == "" {
			now, err := w.newest(ctx)
			if err != nil {
				return err
			}
			if done, err := see(now); now == nil || done || err != nil {
				return err
			}
			m, err := meta.Accessor(now)
			if err != nil {
				return err
			}
			version = m.GetResourceVersion()
		}
		_, err := watchtools.Until(ctx, version, watcher, func(e watch.Event) (bool, error) {
			m, err := meta.Accessor(e.Object)
			if err != nil {
				return false, apierrors.FromObject(e.Object)
			}
			if m.GetName() != w.name {
				return false, nil
			}
			if e.Type == watch.Deleted || m.GetUID() != w.uid {
				return see(nil)
			}
			return see(e.Object)
		})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, watchtools.ErrWatchClosed) && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err):
			return err
		}
		version = "" // the server no longer has what came after it
	}
}

// newest is the object as it is now, nil if it is gone.
func (w watched) newest(ctx context.Context) (runtime.Object, error) {
	now, err := w.verbs.get(ctx, w.name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if m, err := meta.Accessor(now); err != nil || m.GetUID() != w.uid {
		return nil, err
	}
	return now, nil
}
