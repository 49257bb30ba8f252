// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/wherryproject/wherry/internal/api/nodeauth"
	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/api/registry"
)

// nodeAuthorizer lets a node's agent do what concerns that node and the pods that are bound to it. Which pods those are
// it hears from the store by watch. An agent may hear of a pod sooner: what the graph does not allow yet is looked up
// in the store before it is refused.
type nodeAuthorizer struct {
	stores registry.Stores
	rules  []rbacv1.PolicyRule

	mu    sync.RWMutex
	graph *nodeauth.Graph
}

var _ registry.Follower = (*nodeAuthorizer)(nil)

func newNodeAuthorizer(st registry.Stores) *nodeAuthorizer {
	return &nodeAuthorizer{stores: st, rules: rbac.NodeRules(), graph: nodeauth.NewGraph()}
}

// run keeps the graph until ctx is done.
func (n *nodeAuthorizer) run(ctx context.Context) { n.stores["pods"].Follow(ctx, n) }

// NodeOf is the node whose agent a user is.
func NodeOf(u user.Info) (string, bool) {
	if u == nil {
		return "", false
	}
	return nodeauth.NodeOf(u.GetName(), u.GetGroups())
}

// Authorize decides about requests of nodes and has no opinion about others.
func (n *nodeAuthorizer) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	node, ok := NodeOf(a.GetUser())
	if !ok {
		return authorizer.DecisionNoOpinion, "", nil
	}
	verdict := nodeauth.Judge(node, nodeRequest(a), n.rules)
	switch {
	case verdict.Allowed:
		return authorizer.DecisionAllow, "", nil
	case verdict.Need == nil:
		return authorizer.DecisionNoOpinion, verdict.Why, nil
	case n.has(node, *verdict.Need):
		return authorizer.DecisionAllow, "", nil
	}
	found, err := n.lookUp(ctx, node, *verdict.Need)
	switch {
	case err != nil:
		return authorizer.DecisionNoOpinion, "", fmt.Errorf("pods of node %s: %w", node, err)
	case found:
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, nodeauth.NoPod(node), nil
}

func nodeRequest(a authorizer.Attributes) *nodeauth.Request {
	r := &nodeauth.Request{Request: rbac.Request{
		Verb: a.GetVerb(), Namespace: a.GetNamespace(), Group: a.GetAPIGroup(), Resource: a.GetResource(),
		Subresource: a.GetSubresource(), Name: a.GetName(), NonResource: !a.IsResourceRequest(), Path: a.GetPath(),
	}}
	requirements, err := a.GetFieldSelector()
	if err != nil {
		return r
	}
	for _, f := range requirements {
		if f.Field == "spec.nodeName" && (f.Operator == "=" || f.Operator == "==") {
			r.OfNode = f.Value
		}
	}
	return r
}

func (n *nodeAuthorizer) has(node string, ref nodeauth.Ref) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.graph.Has(node, ref)
}

// lookUp asks the store whether a pod on the node is, or refers to, the object; of secrets also whether the account of
// one has it for pulling images.
func (n *nodeAuthorizer) lookUp(ctx context.Context, node string, ref nodeauth.Ref) (bool, error) {
	if ref.Kind == nodeauth.Pod {
		pod, err := n.stores.Pod(ctx, ref.Namespace, ref.Name)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && pod.Spec.NodeName == node, err
	}
	switch ref.Kind {
	case nodeauth.Volume:
		return n.mayReadVolume(ctx, node, ref.Name)
	case nodeauth.Attachment:
		return n.isAttachment(ctx, node, ref.Name)
	}
	pods := n.stores["pods"]
	list, err := pods.List(pods.Within(ctx, ref.Namespace), &metainternal.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node)})
	if err != nil {
		return false, err
	}
	accounts := map[string]bool{}
	for i := range list.(*corev1.PodList).Items {
		pod := &list.(*corev1.PodList).Items[i]
		if slices.Contains(nodeauth.Refs(pod), ref) {
			return true, nil
		}
		accounts[pod.Spec.ServiceAccountName] = true
	}
	if ref.Kind != nodeauth.Secret {
		return false, nil
	}
	for name := range accounts {
		account, err := n.stores.ServiceAccount(ctx, ref.Namespace, name)
		switch {
		case apierrors.IsNotFound(err) || name == "":
		case err != nil:
			return false, err
		case slices.Contains(account.ImagePullSecrets, corev1.LocalObjectReference{Name: ref.Name}):
			return true, nil
		}
	}
	return n.ofVolumes(ctx, node, ref)
}

// Add implements cache.ReflectorStore.
func (n *nodeAuthorizer) Add(obj any) error {
	if pod, ok := obj.(*corev1.Pod); ok {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.graph.Put(pod)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (n *nodeAuthorizer) Update(obj any) error { return n.Add(obj) }

// Delete implements cache.ReflectorStore.
func (n *nodeAuthorizer) Delete(obj any) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.graph.Delete(m.GetNamespace(), m.GetName())
	return nil
}

// Replace implements cache.ReflectorStore.
func (n *nodeAuthorizer) Replace(list []any, _ string) error {
	pods := make([]*corev1.Pod, 0, len(list))
	for _, obj := range list {
		if pod, ok := obj.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.graph.Replace(pods)
	return nil
}

// Resync implements cache.ReflectorStore.
func (*nodeAuthorizer) Resync() error { return nil }

// Bookmark implements cache.ReflectorBookmarkStore.
func (*nodeAuthorizer) Bookmark(string) error { return nil }
