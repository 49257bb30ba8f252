// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
)

// RightsOf is who decides about rights, for a kind of Kubernetes' own whose rules ask: o is what Kind.Foreign was
// called with. The server is not complete when its kinds are opened, so that it is asked with each question.
func RightsOf(o generic.RESTOptionsGetter) authorizer.UnconditionalAuthorizer {
	g, _ := o.(getter)
	return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string,
		error) {
		if g.backend == nil || g.backend.Rights == nil {
			return authorizer.DecisionDeny, "", errors.New("there is nobody who decides about rights")
		}
		return g.backend.Rights().Authorize(ctx, a)
	})
}
