// SPDX-License-Identifier: Apache-2.0

package debugrun

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Client reads, deletes and, for the server's own use, completes records. It is safe for concurrent use.
// +k8s:openapi-gen=false
type Client struct {
	rest   rest.Interface
	params runtime.ParameterCodec
}

// NewClient makes a client of the API server that config names. The config is not changed.
func NewClient(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		return nil, err
	}
	gv := GroupVersion()
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &gv, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Client{rest: client, params: runtime.NewParameterCodec(scheme)}, nil
}

// OfPod selects the records of a pod's name.
func OfPod(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.pod.name", name).String()}
}

// List reads the records of a namespace, or of all of them when it is "".
func (c *Client) List(ctx context.Context, namespace string, o metav1.ListOptions) (*DebugRunList, error) {
	list := &DebugRunList{}
	err := c.rest.Get().NamespaceIfScoped(namespace, namespace != "").Resource(Resource).VersionedParams(&o,
		c.params).Do(ctx).Into(list)
	return list, err
}

// Delete deletes a record.
func (c *Client) Delete(ctx context.Context, namespace, name string, o metav1.DeleteOptions) error {
	return c.rest.Delete().Namespace(namespace).Resource(Resource).Name(name).Body(&o).Do(ctx).Error()
}

// UpdateStatus completes a record. Only the server itself may do so.
func (c *Client) UpdateStatus(ctx context.Context, run *DebugRun) (*DebugRun, error) {
	out := &DebugRun{}
	err := c.rest.Put().Namespace(run.Namespace).Resource(Resource).Name(run.Name).SubResource("status").Body(run).Do(ctx).Into(out)
	return out, err
}

// ListWatch lists and watches the records of all namespaces.
func (c *Client) ListWatch() cache.ListerWatcher {
	return cache.NewListWatchFromClient(c.rest, Resource, metav1.NamespaceAll, fields.Everything())
}
