// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
	"github.com/wherryproject/wherry/internal/podspec"
)

// SetDefaultsNode rounds amounts to what can be stored, lets allocatable be the capacity where it is not given, and
// podCIDR be the first of podCIDRs, or their only one: older clients know nothing but podCIDR.
func SetDefaultsNode(n *corev1.Node) {
	podspec.RoundAmounts(n.Status.Capacity)
	podspec.RoundAmounts(n.Status.Allocatable)
	switch s := &n.Spec; {
	case s.PodCIDR == "" && len(s.PodCIDRs) > 0:
		s.PodCIDR = s.PodCIDRs[0]
	case s.PodCIDR != "" && (len(s.PodCIDRs) == 0 || s.PodCIDRs[0] != s.PodCIDR):
		s.PodCIDRs = []string{s.PodCIDR}
	}
	if n.Status.Allocatable == nil && n.Status.Capacity != nil {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
}

// ValidateNode checks taints, pod CIDRs and what the status says of addresses and amounts.
func ValidateNode(n *corev1.Node) field.ErrorList {
	all := rules.ClusterMeta(&n.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	if swap := n.Status.NodeInfo.Swap; swap != nil && swap.Capacity != nil && *swap.Capacity <= 0 {
		all = append(all, field.Invalid(field.NewPath("status", "nodeInfo", "swap", "capacity"), *swap.Capacity,
			"must be greater than zero"))
	}
	return append(all, nodeBody(n)...)
}

func nodeBody(n *corev1.Node) rules.Errs {
	all := taints(n.Spec.Taints, field.NewPath("spec", "taints"))
	all = append(all, podCIDRs(&n.Spec, field.NewPath("spec"))...)
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
	all = append(all, nodeAmounts(n.Status.Capacity, status.Child("capacity"))...)
	all = append(all, nodeAmounts(n.Status.Allocatable, status.Child("allocatable"))...)
	all = append(all, declaredFeatures(n.Status.DeclaredFeatures, status.Child("declaredFeatures"))...)
	return append(all, nodeAddresses(n.Status.Addresses, status.Child("addresses"))...)
}

func nodeAmounts(list corev1.ResourceList, path *field.Path) rules.Errs {
	all := podspec.ValidateAmounts(list, nodeResourceName, path)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if q := list[name]; isCounted(name) && !isWhole(q) {
			all = append(all, field.Invalid(path.Key(string(name)), q.String(), "must be an integer"))
		}
	}
	return all
}

// declaredFeatures: words in camel case, separated by slashes, in order and each once.
func declaredFeatures(list []string, path *field.Path) (all rules.Errs) {
	isLetter := func(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }
	for i, name := range list {
		wrong := len(name) > validation.DNS1123SubdomainMaxLength || name == "" || name[0] < 'A' || name[0] > 'Z'
		for part := range strings.SplitSeq(name, "/") {
			wrong = wrong || part == "" || !isLetter(rune(part[0])) ||
				strings.ContainsFunc(part, func(r rune) bool { return !isLetter(r) && (r < '0' || r > '9') })
		}
		if wrong {
			all = append(all, field.Invalid(path.Index(i), name,
				fmt.Sprintf("invalid feature name %q: must start with an UpperCamelCase segment, "+
					"with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes", name)))
		}
		switch {
		case i == 0 || list[i-1] < name:
		case list[i-1] == name:
			all = append(all, field.Duplicate(path.Index(i), name))
		default:
			all = append(all, field.Invalid(path.Index(i), name, "list must be sorted alphabetically"))
		}
	}
	return all
}

// ValidateNodeUpdate also keeps pod CIDRs and provider id once they are set.
func ValidateNodeUpdate(now, was *corev1.Node) field.ErrorList {
	all := rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta)
	if len(was.Spec.PodCIDRs) > 0 && !slices.Equal(now.Spec.PodCIDRs, was.Spec.PodCIDRs) {
		all = append(all, field.Forbidden(field.NewPath("spec", "podCIDRs"),
			"node updates may not change podCIDR except from \"\" to valid"))
	}
	if was.Spec.ProviderID != "" && now.Spec.ProviderID != was.Spec.ProviderID {
		all = append(all, field.Forbidden(field.NewPath("spec", "providerID"),
			"node updates may not change providerID except from \"\" to valid"))
	}
	if now.Spec.DoNotUseExternalID != was.Spec.DoNotUseExternalID {
		all = append(all, field.Forbidden(field.NewPath("spec", "externalID"), "may not be updated"))
	}
	return append(all, nodeBody(now)...)
}

func taints(list []corev1.Taint, path *field.Path) (all rules.Errs) {
	type pair struct {
		key    string
		effect corev1.TaintEffect
	}
	known := map[pair]bool{}
	for i, t := range list {
		at := path.Index(i)
		all = append(all, unversioned.ValidateLabelName(t.Key, at.Child("key"))...)
		all = append(all, rules.Valid(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
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

func podCIDRs(s *corev1.NodeSpec, path *field.Path) (all rules.Errs) {
	at := path.Child("podCIDRs")
	if len(s.PodCIDRs) > 2 || len(s.PodCIDRs) == 2 && isIPv6(s.PodCIDRs[0]) == isIPv6(s.PodCIDRs[1]) {
		all = append(all, field.Invalid(at, s.PodCIDRs, "may specify no more than one CIDR for each IP family"))
	}
	for i, cidr := range s.PodCIDRs {
		all = append(all, validation.IsValidCIDRForLegacyField(at.Index(i), cidr, false, nil)...)
	}
	return all
}

func nodeAddresses(list []corev1.NodeAddress, path *field.Path) (all rules.Errs) {
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
	return rules.Valid(path, string(name), validation.IsQualifiedName(string(name)))
}
