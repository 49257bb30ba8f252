// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/wherryproject/wherry/internal/api/rbac"
)

// NodeOf is the node that a user is the agent of.
func NodeOf(user string, groups []string) (string, bool) {
	name, ok := strings.CutPrefix(user, "system:node:")
	return name, ok && name != "" && slices.Contains(groups, "system:nodes")
}

// Request is what a node's agent wants to do.
type Request struct {
	rbac.Request
	// OfNode is the node that a list or watch of pods is confined to by its field selector spec.nodeName=…
	OfNode string
}

// Verdict is what becomes of it.
type Verdict struct {
	Allowed bool
	// Need, if it is not nil, is what a pod on the node would have to be or refer to; unless one does, the request is
	// not allowed.
	Need *Ref
	// Why it is not allowed; empty when it is nothing that nodes are about.
	Why string
}

func allowed() Verdict { return Verdict{Allowed: true} }

func refused(format string, args ...any) Verdict { return Verdict{Why: fmt.Sprintf(format, args...)} }

// need leaves it to the pods.
func need(kind Kind, r *Request) Verdict {
	return Verdict{Need: &Ref{kind, r.Namespace, r.Name}}
}

// Judge decides about a request of a node; rules are what agents do in general (rbac.NodeRules).
func Judge(node string, r *Request, rules []rbacv1.PolicyRule) Verdict {
	if !slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return rbac.Allows(&rule, &r.Request) }) {
		return Verdict{}
	}
	if !r.NonResource && r.Group == "certificates.k8s.io" && r.Resource == "podcertificaterequests" {
		return judgeCertificate(node, r)
	}
	if !r.NonResource && r.Group == "storage.k8s.io" {
		return judgeStorage(node, r)
	}
	if r.NonResource || r.Group != "" && r.Group != "coordination.k8s.io" {
		return allowed()
	}
	switch r.Resource {
	case "nodes":
		return judgeNode(node, r)
	case "pods":
		return judgePod(node, r)
	case "secrets":
		return judgeRead(Secret, r)
	case "configmaps":
		return judgeRead(ConfigMap, r)
	case "persistentvolumeclaims":
		return judgeRead(Claim, r)
	case "persistentvolumes":
		if r.Name == "" {
			return refused("node can only %s %ss by name, those that its pods' claims are bound to", r.Verb, Volume)
		}
		return need(Volume, r)
	case "serviceaccounts": // of its pods, and tokens for them
		return need(ServiceAccount, r)
	case "leases":
		return judgeLease(node, r)
	}
	return allowed()
}

// judgeNode: a create names its node in the body only, which Restrict looks at.
func judgeNode(node string, r *Request) Verdict {
	if r.Verb != "create" && r.Name != node {
		return refused("node %q cannot %s another node, only itself", node, r.Verb)
	}
	return allowed()
}

func judgePod(node string, r *Request) Verdict {
	switch r.Verb {
	case "create": // mirror pods; evictions, which name the pod
		if r.Subresource == "" {
			return allowed()
		}
	case "list", "watch":
		if r.Name == "" || r.Namespace == "" { // a name without a namespace names no pod
			if r.OfNode != node {
				return refused("can only list/watch pods with spec.nodeName field selector set to node %q", node)
			}
			return allowed()
		}
	}
	return need(Pod, r)
}

// judgeRead: a whole list shows objects that no pod here refers to.
func judgeRead(kind Kind, r *Request) Verdict {
	if r.Name == "" || r.Namespace == "" {
		return refused("node can only %s %ss by name, those that its pods refer to", r.Verb, kind)
	}
	return need(kind, r)
}

// judgeCertificate: what a node asks for, Restrict looks at; it sees the requests that name it.
func judgeCertificate(node string, r *Request) Verdict {
	switch {
	case r.Subresource != "":
		return refused("nodes may not access the status subresource of PodCertificateRequests")
	case r.Verb == "create":
		return allowed()
	case (r.Verb == "list" || r.Verb == "watch") && r.OfNode == node:
		return allowed()
	}
	return refused("can only list/watch podcertificaterequests with spec.nodeName field selector set to node %q", node)
}

// judgeStorage: a CSINode says which drivers are on the node of its name; a create names it in the body only, which
// Restrict looks at.
func judgeStorage(node string, r *Request) Verdict {
	switch r.Resource {
	case "csinodes":
		if r.Verb != "create" && r.Name != node {
			return refused("can only access CSINode with the same name as the requesting node")
		}
	case "volumeattachments":
		if r.Name == "" {
			return refused("node can only %s %ss by name, those of its own", r.Verb, Attachment)
		}
		return need(Attachment, r)
	}
	return allowed()
}

func judgeLease(node string, r *Request) Verdict {
	switch {
	case r.Namespace != corev1.NamespaceNodeLease:
		return refused("can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	case r.Verb != "create" && r.Name != node:
		return refused("can only access node lease with the same name as the requesting node")
	}
	return allowed()
}

// NoPod is why a request is not allowed though it would be if a pod on the node referred to the object.
func NoPod(node string) string {
	return fmt.Sprintf("no relationship found between node %q and this object", node)
}
