// SPDX-License-Identifier: Apache-2.0

package noderestriction

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"

	"github.com/wherryproject/wherry/internal/api/authz"
	"github.com/wherryproject/wherry/internal/api/nodeauth"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/upstream"
)

// Plugin holds the writes of a node's agent to its own Node, lease and pods. It only validates: what it looks at is
// what would be stored.
type Plugin struct {
	stores    registry.Stores
	audiences []string // of tokens for this server
}

// New makes the plug-in; audiences are those of tokens for this server.
func New(st registry.Stores, audiences []string) Plugin { return Plugin{st, audiences} }

var _ admission.ValidationInterface = Plugin{}

// Handles implements admission.Interface.
func (Plugin) Handles(op admission.Operation) bool { return op != admission.Connect }

// Validate implements admission.ValidationInterface.
func (p Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	node, ok := authz.NodeOf(a.GetUserInfo())
	if !ok {
		return nil
	}
	if err := p.judge(ctx, node, a); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

func (p Plugin) judge(ctx context.Context, node string, a admission.Attributes) error {
	switch a.GetResource().GroupResource() {
	case corev1.Resource("nodes"):
		return judgeNodeWrite(node, a)
	case corev1.Resource("pods"):
		return p.judgePodWrite(ctx, node, a)
	case corev1.Resource("serviceaccounts"):
		return p.judgeToken(ctx, node, a)
	case coordinationv1.Resource("leases"):
		if lease, ok := written(a).(*coordinationv1.Lease); ok {
			return nodeauth.RestrictLease(node, lease)
		}
	case certificatesv1.Resource("certificatesigningrequests"):
		if csr, ok := a.GetObject().(*certificatesv1.CertificateSigningRequest); ok && a.GetSubresource() == "" &&
			a.GetOperation() == admission.Create {
			return nodeauth.RestrictCSR(node, csr)
		}
	case storagev1.Resource("csinodes"):
		return judgeCSINode(node, a)
	case corev1.Resource("persistentvolumeclaims"):
		return judgeClaimStatus(node, a)
	case certificatesv1.Resource(upstream.PodCertificateRequests):
		return p.judgeCertificate(ctx, node, a)
	}
	return nil
}

// written is the object that a request writes or deletes.
func written(a admission.Attributes) any {
	if a.GetOperation() == admission.Delete {
		return a.GetOldObject()
	}
	return a.GetObject()
}

func judgeNodeWrite(node string, a admission.Attributes) error {
	if a.GetOperation() == admission.Delete {
		return fmt.Errorf("node %q is not allowed to delete a node", node)
	}
	obj, ok := a.GetObject().(*corev1.Node)
	if !ok {
		return fmt.Errorf("unexpected type %T", a.GetObject())
	}
	old, _ := a.GetOldObject().(*corev1.Node)
	return nodeauth.RestrictNode(node, obj, old)
}

func (p Plugin) judgePodWrite(ctx context.Context, node string, a admission.Attributes) error {
	pod, _ := a.GetObject().(*corev1.Pod)
	old, _ := a.GetOldObject().(*corev1.Pod)
	op := a.GetOperation()
	switch sub := a.GetSubresource(); {
	case sub == "" && op == admission.Create && pod != nil:
		return nodeauth.RestrictNewPod(node, pod)
	case sub == "" && op == admission.Delete && old != nil:
		return nodeauth.RestrictPod(node, old)
	case sub == "status" && op == admission.Update && pod != nil && old != nil:
		return nodeauth.RestrictPodStatus(node, pod, old)
	case sub == "eviction" && op == admission.Create:
		evicted, err := p.stores.Pod(ctx, a.GetNamespace(), a.GetName())
		if apierrors.IsNotFound(err) {
			return nil // the eviction says so
		} else if err != nil {
			return err
		}
		return nodeauth.RestrictPod(node, evicted)
	case sub == "":
		return fmt.Errorf("unexpected operation %q, node %q can only create and delete mirror pods", op, node)
	}
	return fmt.Errorf("unexpected pod subresource %q, only 'status' and 'eviction' are allowed", a.GetSubresource())
}

func (p Plugin) judgeToken(ctx context.Context, node string, a admission.Attributes) error {
	request, ok := a.GetObject().(*authenticationv1.TokenRequest)
	if !ok || a.GetSubresource() != "token" {
		return fmt.Errorf("node %q cannot change service accounts", node)
	}
	var pod *corev1.Pod
	if ref := request.Spec.BoundObjectRef; ref != nil && ref.Kind == "Pod" && ref.Name != "" {
		var err error
		if pod, err = p.stores.Pod(ctx, a.GetNamespace(), ref.Name); err != nil && !apierrors.IsNotFound(err) {
			return err
		} else if err != nil {
			return fmt.Errorf("pod %s/%s: %w", a.GetNamespace(), ref.Name, err)
		}
	}
	drivers, err := p.driverAudiences(ctx, pod)
	if err != nil {
		return err
	}
	return nodeauth.RestrictToken(node, request, pod, drivers, p.audiences...)
}
