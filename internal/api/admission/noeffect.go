// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/apis/resource"
	"k8s.io/kubernetes/pkg/apis/storagemigration"
)

// noEffect warns whoever makes an object that nothing here acts on. It refuses nothing.
type noEffect struct{}

var _ admission.ValidationInterface = noEffect{}

// Handles implements admission.Interface.
func (noEffect) Handles(op admission.Operation) bool { return op == admission.Create }

// Validate implements admission.ValidationInterface.
func (noEffect) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	switch a.GetObject().(type) {
	case *resource.ResourceClaim, *resource.ResourceClaimTemplate:
		warning.AddWarning(ctx, "", fmt.Sprintf("%s %s is stored, and no device is given out for it: Wherry does not "+
			"allocate devices, and refuses pods that have spec.resourceClaims", a.GetKind().Kind, a.GetName()))
	case *storagemigration.StorageVersionMigration:
		warning.AddWarning(ctx, "", fmt.Sprintf("StorageVersionMigration %s is stored, and nothing acts on it: Wherry "+
			"stores each kind of its own in one version; objects of a custom resource are stored again when they "+
			"are written", a.GetName()))
	}
	return nil
}
