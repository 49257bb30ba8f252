// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/wherryproject/wherry/internal/api/quota"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
	"github.com/wherryproject/wherry/internal/podspec"
)

// EnforceSecrets is the annotation of a service account whose pods may use no other secrets than the account names
// (Kubernetes docs, "Service Accounts", enforce-mountable-secrets; deprecated, and honoured).
const EnforceSecrets = "kubernetes.io/enforce-mountable-secrets"

// podWarnings looks at new pods only: those that change are changed by programs.
func podWarnings(pod, old *corev1.Pod) []string {
	if old != nil {
		return nil
	}
	return podspec.Warnings(pod)
}

// serviceWarnings names the fields of a service that have no effect here.
func serviceWarnings(s, old *corev1.Service) (all []string) {
	if old != nil && old.Generation == s.Generation && slices.Equal(old.Spec.ExternalIPs, s.Spec.ExternalIPs) &&
		old.Spec.Type == s.Spec.Type {
		return nil
	}
	if s.Spec.LoadBalancerIP != "" {
		all = append(all,
			"spec.loadBalancerIP: deprecated since v1.24; it has an effect only with --load-balancer-cidr")
	}
	if s.Spec.ClusterIP == corev1.ClusterIPNone && s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		all = append(all, "spec.SessionAffinity is ignored for headless services")
	}
	return all
}

func serviceAccountWarnings(a, old *corev1.ServiceAccount) []string {
	_, now := a.Annotations[EnforceSecrets]
	if old != nil {
		if _, before := old.Annotations[EnforceSecrets]; before {
			return nil
		}
	}
	if !now {
		return nil
	}
	return []string{fmt.Sprintf("metadata.annotations[%s]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets", EnforceSecrets)}
}

// quotaWarnings names the entries of a quota that limit nothing because they count no objects: a quota that only looks
// like a limit is worse than none. A resource whose group is not served may be a custom resource, which is counted.
func quotaWarnings(q, old *corev1.ResourceQuota) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
		if old != nil {
			if _, before := old.Spec.Hard[name]; before {
				continue
			}
		}
		if limitsNothing(name) {
			all = append(all, fmt.Sprintf("spec.hard[%s]: has no effect: no such objects are counted here", name))
		}
	}
	return all
}

// deviceClass ends the names of entries for the devices of a class.
const deviceClass = ".deviceclass.resource.k8s.io/devices"

func limitsNothing(name corev1.ResourceName) bool {
	if strings.HasSuffix(string(name), deviceClass) {
		return true
	}
	_, group, _ := strings.Cut(string(name), ".")
	if !quota.IsCount(name) || group != "" && len(schemes.VersionsOf(group)) == 0 {
		return false
	}
	return !slices.ContainsFunc(All(nil),
		func(k *registry.Kind) bool { return Counted(k) && quota.Tracks(k.Resource(), name) })
}

// endpointsREST warns all who use Endpoints, even those who read them, that EndpointSlices replace them (KEP-4974).
type endpointsREST struct{ *registry.REST }

func (endpointsREST) say(ctx context.Context) {
	warning.AddWarning(ctx, "", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
}

// Create implements rest.Creater.
func (r endpointsREST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	r.say(ctx)
	return r.REST.Create(ctx, obj, validate, options)
}

// Update implements rest.Updater.
func (r endpointsREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, mayCreate bool,
	options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	r.say(ctx)
	return r.REST.Update(ctx, name, info, create, update, mayCreate, options)
}

// Get implements rest.Getter.
func (r endpointsREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	r.say(ctx)
	return r.REST.Get(ctx, name, options)
}

// List implements rest.Lister.
func (r endpointsREST) List(ctx context.Context, options *metainternal.ListOptions) (runtime.Object, error) {
	r.say(ctx)
	return r.REST.List(ctx, options)
}

// Watch implements rest.Watcher.
func (r endpointsREST) Watch(ctx context.Context, options *metainternal.ListOptions) (watch.Interface, error) {
	r.say(ctx)
	return r.REST.Watch(ctx, options)
}
