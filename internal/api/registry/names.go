// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8saudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/wherryproject/wherry/internal/audit/trail"
)

// noteGeneratedName puts on the audit event what an object is called whose name the server has made: the library knows
// only what was asked for. What the server stores besides, such as the record of an exec, is no answer to the request.
func noteGeneratedName(ctx context.Context, obj runtime.Object) {
	info, ok := request.RequestInfoFrom(ctx)
	if !ok || info.Verb != "create" || info.Subresource != "" {
		return
	}
	if m, ok := obj.(metav1.Object); ok && m.GetGenerateName() != "" && m.GetName() != "" {
		k8saudit.AddAuditAnnotation(ctx, trail.GeneratedName, m.GetName())
	}
}
