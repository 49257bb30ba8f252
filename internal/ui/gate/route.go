// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"strings"
)

// Prefix is what all paths of the page begin with.
const Prefix = "/ui/"

// Part is a part of the page's handler.
type Part string

const (
	Document Part = "document" // the page itself, at the path of each of its views
	Asset    Part = "asset"    // a file of its build
	SignIn   Part = "sign-in"  // where one-time links lead
	Session  Part = "session"  // who is signed in
	Leave    Part = "leave"    // from where one is sent to the identity provider
	Return   Part = "return"   // where one comes back from it
	API      Part = "api"      // the Kubernetes API
	Why      Part = "why"      // why a pod is not well
)

const (
	assets  = Prefix + "assets/"
	k8s     = Prefix + "k8s"
	signIn  = Prefix + "sign-in"
	session = Prefix + "session"
	why     = Prefix + "why"
	leave   = Prefix + "oidc/start"
	back    = Prefix + "oidc/callback"
)

// Route says which part a path means; "" for one that is not the page's.
func Route(path string) Part {
	switch {
	case path == signIn:
		return SignIn
	case path == session:
		return Session
	case path == why:
		return Why
	case path == leave:
		return Leave
	case path == back:
		return Return
	case path == k8s || strings.HasPrefix(path, k8s+"/"):
		return API
	case strings.HasPrefix(path, assets):
		return Asset
	case strings.HasPrefix(path, Prefix):
		return Document
	}
	return ""
}

// UpstreamPath is the path of the Kubernetes API that a path of the page means, or why there is none. path is
// percent-decoded.
func UpstreamPath(path string) (string, *Refusal) {
	rest, ok := strings.CutPrefix(path, k8s)
	if !ok || rest != "" && rest[0] != '/' {
		return "", refuse(NotFound, "%s is not a path below %s/", path, k8s)
	}
	if rest == "" {
		rest = "/"
	}
	segments := strings.Split(rest[1:], "/")
	if slices.Contains(segments, ".") || slices.Contains(segments, "..") {
		return "", refuse(BadRequest, "%s has . or .. in it: write the path that is meant", path)
	}
	if proxied(slices.DeleteFunc(segments, func(s string) bool { return s == "" })) {
		return "", refuse(Forbidden, "the page does not pass on what pods and services serve: "+
			"use kubectl port-forward or kubectl proxy")
	}
	return rest, nil
}

// proxied reports whether a path leads to what a pod or a service serves, or to a port of a node other than its
// agent's.
func proxied(path []string) bool {
	if len(path) < 4 || path[0] != "api" {
		return false
	}
	path = path[2:] // without the version
	if path[0] == "proxy" {
		return true // the older way to write it
	}
	switch {
	case path[0] == "namespaces" && len(path) >= 5:
		return path[4] == "proxy" && (path[2] == "pods" || path[2] == "services")
	case path[0] == "nodes" && len(path) >= 3:
		return path[2] == "proxy" && strings.Contains(path[1], ":")
	}
	return false
}
