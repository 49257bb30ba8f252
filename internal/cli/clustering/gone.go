// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// errTime is what it was when the time for waiting is over.
var errTime = errors.New("timed out waiting for the deletion, which continues; its status says what holds it up")

// pause is what lies between two looks at what can be watched for no longer than that.
const pause = time.Second

// gone waits until an object is not there any more, or another one of its name is.
func gone(ctx context.Context, at seen, o *unstructured.Unstructured) error {
	for ctx.Err() == nil {
		began := time.Now()
		now, err := at.Get(ctx, o.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.GetUID() != o.GetUID() {
			return nil
		}
		deleted := false
		if err == nil {
			deleted, err = watchDeletion(ctx, at, now)
		}
		if deleted {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		if time.Since(began) < pause { // not as fast as the server ends its watches
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
	return errTime
}

// seen is what an object is looked at and watched by.
type seen interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions, subresources ...string) (*unstructured.Unstructured,
		error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// watchDeletion returns when an object was deleted, or its watch has ended and one must look anew.
func watchDeletion(ctx context.Context, at seen, o *unstructured.Unstructured) (deleted bool, err error) {
	w, err := at.Watch(ctx, metav1.ListOptions{ResourceVersion: o.GetResourceVersion(),
		FieldSelector: fields.OneTermEqualSelector("metadata.name", o.GetName()).String()})
	if apierrors.IsNotFound(err) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case e, open := <-w.ResultChan():
			if !open || e.Type == watch.Deleted || e.Type == watch.Error {
				return e.Type == watch.Deleted, nil
			}
		}
	}
}
