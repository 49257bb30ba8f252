// SPDX-License-Identifier: Apache-2.0

package eventlimits

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/admission"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// maxEventBytes is how large an event of a user's may be. What Kubernetes' own parts write stays below a tenth of that.
const maxEventBytes = 16 << 10

// Size keeps events small (RS-03). No quota counts them, since they expire by themselves, but within their hour a
// user could fill the store for everybody with messages of a megabyte.
type Size struct{}

var _ admission.ValidationInterface = Size{}

// Handles implements admission.Interface.
func (Size) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Validate implements admission.ValidationInterface.
func (Size) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().Resource != "events" || registry.FromInside(ctx) {
		return nil
	}
	e, ok := a.GetObject().(interface{ Size() int })
	if !ok || e.Size() <= maxEventBytes {
		return nil
	}
	return admission.NewForbidden(a,
		fmt.Errorf("the event has %d bytes, and may have %d: shorten its message and annotations", e.Size(),
			maxEventBytes))
}
