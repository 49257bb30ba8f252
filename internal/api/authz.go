// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// authorize decides by group. Members of system:masters may do all; members of system:nodes what a node agent needs; everybody
// who is known may look at what the server is (discovery, version, health). Nobody else may do anything yet.
func authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser() == nil {
		return authorizer.DecisionNoOpinion, "the request has no user", nil
	}
	groups := a.GetUser().GetGroups()
	switch {
	case slices.Contains(groups, user.SystemPrivilegedGroup):
		return authorizer.DecisionAllow, "", nil
	case !a.IsResourceRequest() && a.IsReadOnly() && aboutTheServer(a.GetPath()):
		return authorizer.DecisionAllow, "", nil
	case slices.Contains(groups, user.NodesGroup) && nodeMay(a):
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "only members of group " + user.SystemPrivilegedGroup + " have this right here", nil
}

func aboutTheServer(path string) bool {
	for _, open := range []string{"/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz"} {
		if path == open || len(path) > len(open) && path[:len(open)] == open && path[len(open)] == '/' {
			return true
		}
	}
	return false
}

// nodeMay is the list of what node agents do.
func nodeMay(a authorizer.Attributes) bool {
	if !a.IsResourceRequest() {
		return false
	}
	verb := a.GetVerb()
	read := a.IsReadOnly()
	resource := a.GetResource()
	if s := a.GetSubresource(); s != "" {
		resource += "/" + s
	}
	switch a.GetAPIGroup() {
	case "":
		switch resource {
		case "nodes", "services", "namespaces", "endpoints", "serviceaccounts":
			return read || resource == "nodes" && slices.Contains([]string{"create", "update", "patch"}, verb)
		case "nodes/status", "pods/status":
			return verb == "update" || verb == "patch"
		case "pods":
			return read || verb == "create" || verb == "delete" // mirror pods; the last step of every deletion
		case "configmaps", "secrets":
			return read
		case "serviceaccounts/token", "pods/eviction":
			return verb == "create"
		case "events":
			return slices.Contains([]string{"create", "update", "patch"}, verb)
		}
	case "events.k8s.io":
		return resource == "events" && slices.Contains([]string{"create", "update", "patch"}, verb)
	case "coordination.k8s.io":
		return resource == "leases" && slices.Contains([]string{"get", "create", "update", "patch", "delete"}, verb)
	case "discovery.k8s.io":
		return resource == "endpointslices" && read
	}
	return false
}
