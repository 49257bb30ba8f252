// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/apis/networking"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// oldIngressClass is how an Ingress said its class before there was a field.
const oldIngressClass = "kubernetes.io/ingress.class"

// network gives an Ingress the default class, and tells of what has no effect here.
type network struct {
	classes    *registry.REST
	unenforced func() string // why policies have no effect; nil: nobody enforces any
	services   netip.Prefix  // their addresses are of its family
}

var (
	_ admission.MutationInterface   = network{}
	_ admission.ValidationInterface = network{}
)

// Handles implements admission.Interface.
func (network) Handles(op admission.Operation) bool { return op == admission.Create }

// Admit implements admission.MutationInterface.
func (p network) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	ingress, ok := a.GetObject().(*networking.Ingress)
	if !ok || a.GetSubresource() != "" || classed(ingress) {
		return nil
	}
	list, err := p.classes.List(p.classes.Within(ctx, ""), &metainternal.ListOptions{})
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("read the ingress classes: %w", err))
	}
	class := newestDefault(list.(*networking.IngressClassList).Items,
		func(c *networking.IngressClass) (*metav1.ObjectMeta, bool) {
			return &c.ObjectMeta, c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true"
		})
	if class != nil {
		ingress.Spec.IngressClassName = &class.Name
	}
	return nil
}

func classed(i *networking.Ingress) bool {
	_, old := i.Annotations[oldIngressClass]
	return old || i.Spec.IngressClassName != nil
}

// Validate implements admission.ValidationInterface. It refuses nothing.
func (p network) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	switch o := a.GetObject().(type) {
	case *networking.Ingress:
		if !classed(o) {
			warning.AddWarning(ctx, "", "spec.ingressClassName: not set, and no IngressClass is the default: the "+
				"Ingress has an effect only if a controller is installed that takes those without a class; Wherry "+
				"brings none")
		}
	case *networking.NetworkPolicy:
		why := "nobody on this machine does"
		if p.unenforced != nil {
			why = p.unenforced()
		}
		if why != "" {
			warning.AddWarning(ctx, "", fmt.Sprintf("NetworkPolicy %s is stored and not enforced: %s", o.Name, why))
		}
	case *networking.ServiceCIDR:
		for i, text := range o.Spec.CIDRs {
			c, err := netip.ParsePrefix(text)
			if err == nil && p.services.IsValid() && c.Addr().Is4() != p.services.Addr().Is4() {
				warning.AddWarning(ctx, "", fmt.Sprintf("spec.cidrs[%d]: no service has an address of %s: those of "+
					"this server are of the address family of its --service-cidr, %s", i, c, p.services))
			}
		}
	}
	return nil
}
