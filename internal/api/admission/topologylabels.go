// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// topologyLabels tells a pod in which zone and region it is: when it is given to a node, it gets the node's labels of
// these (KEP-4742), which its containers can have by the downward API.
type topologyLabels struct{ nodes *registry.REST }

var _ admission.MutationInterface = topologyLabels{}

// Handles implements admission.Interface.
func (topologyLabels) Handles(op admission.Operation) bool { return op == admission.Create }

// Admit implements admission.MutationInterface.
func (t topologyLabels) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1.Resource("pods") {
		return nil
	}
	var node string
	var meta *metav1.ObjectMeta
	switch obj := a.GetObject().(type) {
	case *corev1.Pod:
		if a.GetSubresource() == "" {
			node, meta = obj.Spec.NodeName, &obj.ObjectMeta
		}
	case *corev1.Binding:
		node, meta = obj.Target.Name, &obj.ObjectMeta
	}
	if node == "" {
		return nil
	}
	n, err := registry.Get[corev1.Node](ctx, t.nodes, "", node)
	if apierrors.IsNotFound(err) { // whether it may be given to one that is not there is not for us to say
		return nil
	}
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	for _, name := range []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion} {
		value, there := n.Labels[name]
		if !there {
			continue
		}
		if meta.Labels == nil {
			meta.Labels = map[string]string{}
		}
		meta.Labels[name] = value
	}
	return nil
}
