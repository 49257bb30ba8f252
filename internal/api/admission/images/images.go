// SPDX-License-Identifier: Apache-2.0

package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/imagepolicy"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/imagename"
)

// auditKey is where the audit log has what image policies with the action Audit have against a request.
const auditKey = imagepolicy.GroupName + "/audit-violations"

// Plugin holds the images that get into pods to the policies of their namespace, by whatever way they come: every write
// of a pod and of its subresources passes here, and image exec shows itself as one (EC-21, IX-07). It fails closed:
// where the policies cannot be read, no image gets in.
type Plugin struct {
	Namespace func(ctx context.Context, name string) (*corev1.Namespace, error)
	Stored    *registry.Ruled           // nil: nobody has stored any
	Fixed     []imagepolicy.ImagePolicy // of the configuration file
	// Names are those under which nodes know the image of an id; node is where the pod is, "" if that is not decided.
	Names func(ctx context.Context, node, id string) ([]string, error)
}

var _ admission.ValidationInterface = (*Plugin)(nil)

// New makes the plug-in of a server; fixed are the policies of its configuration file.
func New(st registry.Stores, fixed []imagepolicy.ImagePolicy, locate connect.NodeLocator) *Plugin {
	return &Plugin{Namespace: st.Namespace, Stored: registry.NewRuled(st[imagepolicy.Resource]), Fixed: fixed,
		Names: names{st, locate}.of}
}

// Watch follows what other servers on the same etcd store, until ctx is done.
func (p *Plugin) Watch(ctx context.Context) { p.Stored.Watch(ctx) }

// Handles implements admission.Interface.
func (*Plugin) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Validate implements admission.ValidationInterface: everything that is against it at once.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok || a.GetResource().GroupResource() != corev1.Resource("pods") {
		return nil
	}
	var was *corev1.PodSpec
	if old, ok := a.GetOldObject().(*corev1.Pod); ok && old != nil {
		was = &old.Spec
	}
	uses := imagepolicy.New(&pod.Spec, was)
	if len(uses) == 0 {
		return nil
	}
	policies, err := p.of(ctx, a.GetNamespace())
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("no image is allowed while the image policies cannot be read: %w",
			err))
	}
	judge := p.judge(ctx, pod.Spec.NodeName)
	var refused, noted []string
	for i := range policies {
		for _, use := range uses {
			against := judge(&policies[i].Spec, use.Image)
			if against == "" {
				continue
			}
			words := fmt.Sprintf("image policy %q: %s of pod %q: %s", policies[i].Name, use.By, podName(a, pod),
				against)
			switch policies[i].Spec.Action {
			case imagepolicy.Warn:
				warning.AddWarning(ctx, "", "would violate "+words)
			case imagepolicy.Audit:
				noted = append(noted, words)
			case imagepolicy.Enforce:
				refused = append(refused, words)
			default: // a policy of a newer version: what it wants is not known
				refused = append(refused, words)
			}
		}
	}
	if len(noted) > 0 {
		_ = a.AddAnnotation(auditKey, strings.Join(noted, "; ")) // the key is a good one
	}
	if len(refused) == 0 {
		return nil
	}
	return admission.NewForbidden(a, errors.New(strings.Join(refused, "; ")))
}

// judge makes the judge of one request's images. An image that is called by its id is judged by the names that it has
// at the nodes, which are asked once, and only if a policy wants to know.
func (p *Plugin) judge(ctx context.Context, node string) func(*imagepolicy.ImagePolicySpec, string) string {
	type answer struct {
		names []string
		err   error
	}
	known := map[string]answer{}
	return func(policy *imagepolicy.ImagePolicySpec, image string) string {
		if !imagename.IsID(image) {
			return policy.Judge(image)
		}
		if !policy.NeedsNames() {
			return policy.JudgeID(image, nil)
		}
		got, asked := known[image]
		if !asked {
			got.names, got.err = p.Names(ctx, node, image)
			known[image] = got
		}
		if got.err != nil {
			return fmt.Sprintf("image %q is an image id, and its names cannot be checked now: %v; name the image as registry/name:tag", image, got.err)
		}
		return policy.JudgeID(image, got.names)
	}
}

// listed are the policies that somebody has stored.
func (p *Plugin) listed(ctx context.Context) ([]imagepolicy.ImagePolicy, error) {
	if has, err := p.Stored.Has(ctx, ""); err != nil || !has {
		return nil, err
	}
	r := p.Stored.Of
	list, err := r.List(r.Within(ctx, ""), &metainternal.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.(*imagepolicy.ImagePolicyList).Items, nil
}

// of are the policies that concern a namespace, in the order of their names. A server without policies reads nothing.
func (p *Plugin) of(ctx context.Context, namespace string) ([]imagepolicy.ImagePolicy, error) {
	all := slices.Clone(p.Fixed)
	if p.Stored != nil {
		stored, err := p.listed(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, stored...)
	}
	if len(all) == 0 {
		return nil, nil
	}
	ns, err := p.Namespace(ctx, namespace)
	if err != nil {
		return nil, err
	}
	concerned := all[:0]
	for i := range all {
		switch yes, err := all[i].Spec.Concerns(ns); {
		case err != nil:
			return nil, fmt.Errorf("policy %s: %w", all[i].Name, err)
		case yes:
			concerned = append(concerned, all[i])
		}
	}
	return concerned, nil
}

// podName is the name of a request's pod, or what its name is to begin with.
func podName(a admission.Attributes, pod *corev1.Pod) string {
	return cmp.Or(a.GetName(), pod.Name, pod.GenerateName)
}
