// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// gone waits until an object is not there any more, or another one of its name is.
func (p *plan) gone(ctx context.Context, o *unstructured.Unstructured) error {
	at, _, err := p.of(o.GroupVersionKind(), o.GetNamespace())
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		now, err := at.Get(ctx, o.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.GetUID() != o.GetUID() {
			return nil
		}
		if err != nil {
			return err
		}
		if err := watchDeletion(ctx, at, now); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// watcher is what an object is watched by.
type watcher interface {
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// watchDeletion returns when an object was deleted, or its watch has ended and one must look anew.
func watchDeletion(ctx context.Context, at watcher, o *unstructured.Unstructured) error {
	w, err := at.Watch(ctx, metav1.ListOptions{ResourceVersion: o.GetResourceVersion(),
		FieldSelector: fields.OneTermEqualSelector("metadata.name", o.GetName()).String()})
	if apierrors.IsNotFound(err) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return errors.New("the time for it is over")
		case e, open := <-w.ResultChan():
			if !open || e.Type == watch.Deleted || e.Type == watch.Error {
				return nil
			}
		}
	}
}
