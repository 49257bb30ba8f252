// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/api/registry"
)

// Authorizers decide in turn: members of system:masters may do all, a node what is about itself and its pods, and
// everybody what roles allow.
type Authorizers struct {
	policy *policy
	nodes  *nodeAuthorizer
}

var _ authorizer.RuleResolver = (*Authorizers)(nil)

// New decide by what is stored. They hear of changes while they run.
func New(stores registry.Stores) *Authorizers {
	return &Authorizers{policy: newPolicy(stores), nodes: newNodeAuthorizer(stores)}
}

// Run follows the store until ctx is done.
func (z *Authorizers) Run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { z.policy.run(ctx) })
	both.Go(func() { z.nodes.run(ctx) })
	both.Wait()
}

// Authorize implements authorizer.UnconditionalAuthorizer.
func (z *Authorizers) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser() == nil {
		return authorizer.DecisionNoOpinion, "the request has no user", nil
	}
	if slices.Contains(a.GetUser().GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	decision, why, err := z.nodes.Authorize(ctx, a)
	if decision == authorizer.DecisionAllow {
		return decision, why, err
	}
	allowed, reason, rerr := z.policy.Authorize(ctx, a)
	if rerr != nil || allowed == authorizer.DecisionAllow {
		return allowed, reason, rerr
	}
	return allowed, strings.Join(slices.DeleteFunc([]string{why, reason}, func(s string) bool { return s == "" }),
		", "), err
}

// RulesFor implements authorizer.RuleResolver, for a person who asks what he or she may do.
func (z *Authorizers) RulesFor(ctx context.Context, u user.Info,
	namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	rules, missing, err := z.policy.rulesFor(ctx, u, namespace)
	if err != nil {
		return nil, nil, true, err
	}
	if slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		rules = append(rbac.Everything(), rules...)
	}
	var resources []authorizer.ResourceRuleInfo
	var others []authorizer.NonResourceRuleInfo
	for i := range rules {
		r := &rules[i]
		if len(r.Resources) > 0 {
			resources = append(resources, &authorizer.DefaultResourceRuleInfo{
				Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
		}
		if len(r.NonResourceURLs) > 0 {
			others = append(others, &authorizer.DefaultNonResourceRuleInfo{Verbs: r.Verbs,
				NonResourceURLs: r.NonResourceURLs})
		}
	}
	_, isNode := NodeOf(u)
	switch {
	case isNode:
		err = errNodeRules
	case len(missing) > 0:
		err = missingRoles(missing)
	}
	return resources, others, err != nil, err
}

// streamVerbs has a request that opens a stream into a pod judged as a create, whichever method carries it: a WebSocket
// must begin with a GET, and who may read a pod's exec must not be able to run commands by that. The same holds for the
// way to them through a node's own API, which lets this server do everything, whoever asked it.
type streamVerbs struct{ request.RequestInfoResolver }

// WithStreamVerbs has streams judged as what they are.
func WithStreamVerbs(r request.RequestInfoResolver) request.RequestInfoResolver {
	return streamVerbs{r}
}

// NewRequestInfo implements request.RequestInfoResolver.
func (v streamVerbs) NewRequestInfo(req *http.Request) (*request.RequestInfo, error) {
	info, err := v.RequestInfoResolver.NewRequestInfo(req)
	if err == nil && info.IsResourceRequest && info.APIGroup == "" && info.Verb == "get" && opensStream(info) {
		info.Verb = "create"
	}
	return info, err
}

func opensStream(info *request.RequestInfo) bool {
	switch info.Resource + "/" + info.Subresource {
	case "pods/exec", "pods/attach", "pods/portforward":
		return true
	case "nodes/proxy":
		rest := path.Clean("/" + strings.Join(info.Parts[min(3, len(info.Parts)):], "/"))
		switch first, _, _ := strings.Cut(rest[1:], "/"); strings.ToLower(first) {
		case "exec", "attach", "portforward", "run", "imageexec":
			return true
		}
	}
	return false
}
