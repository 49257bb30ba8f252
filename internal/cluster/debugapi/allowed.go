// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/wherryproject/wherry/internal/cluster/debugapi/rights"
)

// allowed refuses who lacks one of the needs (DA-04).
func (s *Server) allowed(ctx context.Context, pod string, needs []rights.Need) error {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewUnauthorized("the request has no user")
	}
	namespace := request.NamespaceValue(ctx)
	for _, need := range needs {
		decision, _, err := s.authorizer.Authorize(ctx, need.Attributes(user, namespace))
		switch {
		case decision == authorizer.DecisionAllow:
		case err != nil:
			return apierrors.NewInternalError(fmt.Errorf("cannot ask whether %s may %s %s: %w", user.GetName(),
				need.Verb, need.Resource, err))
		default:
			return refusal(http.StatusForbidden, metav1.StatusReasonForbidden, pod, "%s",
				need.Missing(user.GetName(), namespace))
		}
	}
	return nil
}
