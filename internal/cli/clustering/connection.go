// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// connection is one to a cluster, for objects of any kind.
type connection struct {
	*reach.Client
	objects dynamic.Interface
	mapper  meta.RESTMapper
}

// connect asks the cluster what it has.
func connect(where *reach.Flags) (*connection, error) {
	client, err := where.Connect()
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(client.Config)
	config.WarningHandler = rest.NoWarnings{} // that agents are privileged is in the guide
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	groups, err := restmapper.GetAPIGroupResources(client.Discovery())
	if err != nil {
		return nil, err
	}
	return &connection{Client: client, objects: objects, mapper: restmapper.NewDiscoveryRESTMapper(groups)}, nil
}

// of is the way to an object of a kind.
func (c *connection) of(kind schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface,
	schema.GroupVersionResource, error) {
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, schema.GroupVersionResource{}, err
	}
	at := c.objects.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return at.Namespace(namespace), mapping.Resource, nil
	}
	return at, mapping.Resource, nil
}

// title names an object as kubectl does.
func title(o *unstructured.Unstructured) string {
	return strings.ToLower(o.GetKind()) + "/" + o.GetName()
}

// registration is the APIService, and where it says that the API is.
func (c *connection) registration(ctx context.Context) (o *unstructured.Unstructured, namespace string, err error) {
	o, err = c.objects.Resource(apiServices()).Get(ctx, registrationName, metav1.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	namespace, _, err = unstructured.NestedString(o.Object, "spec", "service", "namespace")
	return o, namespace, err
}

const registrationName = wire.Version + "." + wire.Group

func apiServices() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
}

// conditionOf is a condition in an object's status.
func conditionOf(o *unstructured.Unstructured, kind string) (found condition) {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions") // of another shape: it has none
	for _, c := range all {
		m, is := c.(map[string]any)
		if !is || m["type"] != kind {
			continue
		}
		reason, _ := m["reason"].(string)
		message, _ := m["message"].(string)
		return condition{m["status"] == "True", reason, message}
	}
	return condition{Reason: "nothing is known yet"}
}
