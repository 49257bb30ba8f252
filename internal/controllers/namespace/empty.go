// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
)

// kind is something that a namespace can hold.
type kind struct {
	resource   schema.GroupVersionResource
	collection bool // can be deleted all at once
}

// kinds asks the API server what there is. A group that does not answer is an error, but the others are returned.
func (c *Controller) kinds() ([]kind, error) {
	lists, err := discovery.ServerPreferredNamespacedResources(c.client.Discovery())
	var out []kind
	for _, list := range lists {
		gv, parseErr := schema.ParseGroupVersion(list.GroupVersion)
		if parseErr != nil {
			return out, &groupVersionError{parseErr}
		}
		for _, r := range list.APIResources {
			verbs := sets.New(r.Verbs...)
			if verbs.HasAll("delete", "list") {
				out = append(out, kind{gv.WithResource(r.Name), verbs.Has("deletecollection")})
			}
		}
	}
	return out, err
}

// groupVersionError is a group version that cannot be read.
type groupVersionError struct{ error }

// empty deletes what the namespace holds and returns what is left.
func (c *Controller) empty(ctx context.Context, namespace string) *content {
	found := newContent()
	kinds, err := c.kinds()
	if err != nil {
		found.discovery = err
	}
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	for _, k := range kinds {
		if k.resource == pods {
			c.emptyKind(ctx, namespace, k, found)
		}
	}
	if !found.empty() || len(found.deletion) > 0 {
		return found
	}
	for _, k := range kinds {
		if k.resource != pods {
			c.emptyKind(ctx, namespace, k, found)
		}
	}
	return found
}

// emptyKind deletes all objects of one kind and counts those that stay.
func (c *Controller) emptyKind(ctx context.Context, namespace string, k kind, found *content) {
	client := c.objects.Resource(k.resource).Namespace(namespace)
	items, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		found.failed(k.resource, err)
		return
	}
	if len(items.Items) == 0 {
		return
	}
	background := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	collection := k.collection
	if collection {
		err := client.DeleteCollection(ctx, background, metav1.ListOptions{})
		if apierrors.IsMethodNotSupported(err) {
			collection = false
		} else if err != nil && !apierrors.IsNotFound(err) {
			found.failed(k.resource, err)
		}
	}
	if !collection {
		for i := range items.Items {
			if err := client.Delete(ctx, items.Items[i].Name, background); err != nil && !apierrors.IsNotFound(err) {
				found.failed(k.resource, fmt.Errorf("%s: %w", items.Items[i].Name, err))
			}
		}
	}
	items, err = client.List(ctx, metav1.ListOptions{})
	if err != nil {
		found.failed(k.resource, err)
		return
	}
	for i := range items.Items {
		found.stays(k.resource, items.Items[i].Finalizers)
	}
}
