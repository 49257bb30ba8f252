// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Request is what somebody wants to do: with a resource, or with a path that is none.
type Request struct {
	User   string
	Groups []string

	Verb        string
	Namespace   string // empty: of the cluster
	Group       string
	Resource    string
	Subresource string
	Name        string // empty where the request names no object, such as create and most lists

	NonResource bool
	Path        string // of a request that is for no resource
}

// Allows reports whether one rule allows the request.
func Allows(rule *rbacv1.PolicyRule, r *Request) bool {
	if !holds(rule.Verbs, rbacv1.VerbAll, r.Verb) {
		return false
	}
	if r.NonResource {
		return slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool { return urlMatches(url, r.Path) })
	}
	return holds(rule.APIGroups, rbacv1.APIGroupAll, r.Group) &&
		resourceMatches(rule.Resources, r.Resource, r.Subresource) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.Name))
}

func holds(list []string, all, one string) bool {
	for _, item := range list {
		if item == all || item == one {
			return true
		}
	}
	return false
}

// resourceMatches: "*" is every resource and subresource, "pods" the resource alone, "pods/log" one subresource of it,
// "*/scale" a subresource of whatever resource.
func resourceMatches(list []string, resource, subresource string) bool {
	for _, item := range list {
		if item == rbacv1.ResourceAll {
			return true
		}
		parent, sub, isSub := strings.Cut(item, "/")
		switch {
		case !isSub && subresource == "" && item == resource:
			return true
		case isSub && subresource != "" && sub == subresource && (parent == resource || parent == rbacv1.ResourceAll):
			return true
		}
	}
	return false
}

// urlMatches: a star stands for any rest, and only at the end; more of them are as one.
func urlMatches(url, path string) bool {
	if prefix := strings.TrimRight(url, "*"); prefix != url {
		return strings.HasPrefix(path, prefix)
	}
	return url == path
}
