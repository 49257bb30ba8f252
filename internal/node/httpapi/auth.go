// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/wherryproject/wherry/internal/debug/wire"
)

// whyUnknown words that a client is not known, and what would make it known.
func (s *Server) whyUnknown(err error) string {
	with := "a client certificate"
	if s.config.Tokens != nil {
		with += " or a bearer token"
	}
	if err != nil {
		return "invalid credentials: " + err.Error() + "; " + with + " is required"
	}
	return with + " is required"
}

// guarded lets in who has a certificate of the CA, or a token that the API server knows, and may do what is asked.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok, err := s.authenticate(r)
		if err != nil || !ok {
			reason := s.whyUnknown(err)
			s.logger.Debug("kubelet API refused a client", "remote", r.RemoteAddr, "path", r.URL.Path, "err", reason)
			http.Error(w, "Unauthorized: "+reason, http.StatusUnauthorized)
			return
		}
		if err := s.authorize(r.Context(), who.User, r); err != nil {
			s.logger.Debug("kubelet API refused a request", "user", who.User.GetName(), "path", r.URL.Path, "err", err)
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// authorize asks for each of the attributes in turn; one that is allowed is enough.
func (s *Server) authorize(ctx context.Context, u user.Info, r *http.Request) error {
	all := attributesOf(s.config.NodeName, r.Method, r.URL.Path)
	for _, a := range all {
		a.User = u
		decision, _, err := s.config.Authorize(ctx, a)
		if err != nil && decision != authorizer.DecisionAllow {
			return fmt.Errorf("Authorization error (user=%s, verb=%s, resource=%s, subresource=%s): %w", u.GetName(),
				a.Verb, a.Resource, a.Subresource, err)
		}
		if decision == authorizer.DecisionAllow {
			return nil
		}
	}
	last := all[len(all)-1]
	return fmt.Errorf("Forbidden (user=%s, verb=%s, resource=%s, subresource=%s)", u.GetName(), last.Verb,
		last.Resource, last.Subresource)
}

// attributesOf says what permission on the node a request needs: the first is the narrow one, the second, if any, is
// nodes/proxy, which stands for all the narrow ones of its kind.
func attributesOf(node, method, path string) []authorizer.AttributesRecord {
	a := authorizer.AttributesRecord{
		Verb: verbOf(method), APIVersion: "v1", Resource: "nodes", Name: node, Subresource: "proxy",
		ResourceRequest: true, Path: path,
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	narrow := func(sub string) []authorizer.AttributesRecord {
		n := a
		n.Subresource = sub
		return []authorizer.AttributesRecord{n, a}
	}
	switch first {
	case "stats", "metrics":
		a.Subresource = first
	case "logs":
		a.Subresource = "log"
	case "healthz", "configz": // KEP-2862
		return narrow(first)
	case "pods", "runningpods":
		return narrow("pods")
	case "exec", "attach", "portForward", wire.RouteImageExec.Word():
		a.Verb = "create"
	}
	return []authorizer.AttributesRecord{a}
}

func verbOf(method string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return "get"
}

// mastersOnly allows everything to the group that API servers' kubelet clients are in.
func mastersOnly(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(a.GetUser().GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "only the group system:masters may use this node's API", nil
}
