// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/podspec"
)

// SetDefaultsNode lets allocatable be the capacity where it is not given.
func SetDefaultsNode(n *corev1.Node) {
	if n.Status.Allocatable == nil && n.Status.Capacity != nil {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
}

// ValidateNode checks taints, pod CIDRs and what the status says of addresses and amounts.
func ValidateNode(n *corev1.Node) field.ErrorList {
	all := clusterMeta(&n.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	return append(all, nodeBody(n)...)
}

func nodeBody(n *corev1.Node) errs {
	all := taints(n.Spec.Taints, field.NewPath("spec", "taints"))
	all = append(all, podCIDRs(&n.Spec, field.NewPath("spec"))...)
	if n.Spec.ConfigSource != nil {
		all = append(all, field.Forbidden(field.NewPath("spec", "configSource"), "configSource may not be set: dynamic kubelet configuration is gone"))
	}
	if p := n.Spec.PodPreemptionPolicy; p != nil {
		at := field.NewPath("spec", "podPreemptionPolicy", "disableResizePreemption")
		if len(p.DisableResizePreemption) > 20 {
			all = append(all, field.TooMany(at, len(p.DisableResizePreemption), 20))
		}
		for i, owner := range p.DisableResizePreemption {
			all = append(all, unversioned.ValidateLabelName(owner, at.Index(i))...)
		}
	}
	status := field.NewPath("status")
	all = append(all, podspec.ValidateAmounts(n.Status.Capacity, nodeResourceName, status.Child("capacity"))...)
	all = append(all, podspec.ValidateAmounts(n.Status.Allocatable, nodeResourceName, status.Child("allocatable"))...)
	return append(all, nodeAddresses(n.Status.Addresses, status.Child("addresses"))...)
}

// ValidateNodeUpdate also keeps pod CIDRs and provider id once they are set.
func ValidateNodeUpdate(now, was *corev1.Node) field.ErrorList {
	all := metaUpdate(&now.ObjectMeta, &was.ObjectMeta)
	if len(was.Spec.PodCIDRs) > 0 && !slices.Equal(now.Spec.PodCIDRs, was.Spec.PodCIDRs) {
		all = append(all, field.Forbidden(field.NewPath("spec", "podCIDRs"), "node updates may not change podCIDR except from \"\" to valid"))
	}
	if was.Spec.ProviderID != "" && now.Spec.ProviderID != was.Spec.ProviderID {
		all = append(all, field.Forbidden(field.NewPath("spec", "providerID"), "node updates may not change providerID except from \"\" to valid"))
	}
	return append(all, nodeBody(now)...)
}

func taints(list []corev1.Taint, path *field.Path) (all errs) {
	type pair struct {
		key    string
		effect corev1.TaintEffect
	}
	known := map[pair]bool{}
	for i, t := range list {
		at := path.Index(i)
		all = append(all, unversioned.ValidateLabelName(t.Key, at.Child("key"))...)
		all = append(all, valid(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
		all = append(all, podspec.TaintEffect(at.Child("effect"), t.Effect)...)
		if known[pair{t.Key, t.Effect}] {
			dup := field.Duplicate(at, t)
			dup.Detail = "taints must be unique by key and effect pair"
			all = append(all, dup)
		}
		known[pair{t.Key, t.Effect}] = true
	}
	return all
}

func podCIDRs(s *corev1.NodeSpec, path *field.Path) (all errs) {
	at := path.Child("podCIDRs")
	if len(s.PodCIDRs) > 0 && s.PodCIDR != s.PodCIDRs[0] {
		all = append(all, field.Invalid(path.Child("podCIDR"), s.PodCIDR, "must be the first of `podCIDRs`"))
	}
	if len(s.PodCIDRs) > 2 {
		all = append(all, field.Invalid(at, s.PodCIDRs, "may specify no more than one CIDR for each IP family"))
	}
	for i, cidr := range s.PodCIDRs {
		all = append(all, validation.IsValidCIDRForLegacyField(at.Index(i), cidr, false, nil)...)
	}
	return all
}

func nodeAddresses(list []corev1.NodeAddress, path *field.Path) (all errs) {
	for i, a := range list {
		if slices.Contains(list[:i], a) {
			all = append(all, field.Duplicate(path.Index(i), fmt.Sprintf("%s %s", a.Type, a.Address)))
		}
	}
	return all
}

// nodeResourceName: what a node has; pods are counted too.
func nodeResourceName(path *field.Path, name corev1.ResourceName) field.ErrorList {
	if name == corev1.ResourcePods || name == corev1.ResourceStorage {
		return nil
	}
	return valid(path, string(name), validation.IsQualifiedName(string(name)))
}
