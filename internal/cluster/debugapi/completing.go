// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"context"

	"k8s.io/apiserver/pkg/admission"

	"github.com/wherryproject/wherry/internal/cluster/debugapi/options"
)

// completing is the cluster's admission, which judges requests that say all of what is going to be done (DA-06).
type completing struct {
	rules  admission.Interface
	server *Server
}

var (
	_ admission.MutationInterface   = completing{}
	_ admission.ValidationInterface = completing{}
)

// Handles implements admission.Interface.
func (c completing) Handles(o admission.Operation) bool {
	return o == admission.Connect || c.rules.Handles(o)
}

// Admit implements admission.MutationInterface: what the client has left out is filled in first.
func (c completing) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if request, ok := a.GetObject().(options.Completer); ok && a.GetOperation() == admission.Connect {
		pod, err := c.server.pod(ctx, a.GetName())
		if err != nil {
			return err
		}
		request.Complete(pod, c.server.config.Limits)
	}
	if rules, ok := c.rules.(admission.MutationInterface); ok && rules.Handles(a.GetOperation()) {
		return rules.Admit(ctx, a, o)
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (c completing) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if rules, ok := c.rules.(admission.ValidationInterface); ok && rules.Handles(a.GetOperation()) {
		return rules.Validate(ctx, a, o)
	}
	return nil
}
