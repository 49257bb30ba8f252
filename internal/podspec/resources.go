// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/quantities"
)

// containerResources: known names, no negative amounts, requests within limits, hugepages whole and with
// company, claims that the Pod has.
func (s *scope) containerResources(r *corev1.ResourceRequirements, path *field.Path) errs {
	all := ValidateRequirements(r, ContainerResourceName, path)
	names := seen{}
	for i, c := range r.Claims {
		at := path.Child("claims").Index(i)
		if c.Name == "" {
			all = append(all, field.Required(at.Child("name"), ""))
			continue
		}
		if !s.claims[c.Name] {
			all = append(all, field.NotFound(at.Child("name"), c.Name))
		}
		if c.Request != "" {
			all = append(all, dnsLabel(at.Child("request"), c.Request)...)
		}
		all = append(all, names.unique(at, c.Name+"/"+c.Request)...)
	}
	return all
}

// ValidateRequirements checks amounts and their relation; nameRule says which resources may be named.
func ValidateRequirements(r *corev1.ResourceRequirements, nameRule func(*field.Path,
	corev1.ResourceName) field.ErrorList,
	path *field.Path,
) (all field.ErrorList) {
	limits, requests := path.Child("limits"), path.Child("requests")
	hugePages, company := false, false
	note := func(name corev1.ResourceName) {
		hugePages = hugePages || isHugePages(name)
		company = company || name == corev1.ResourceCPU || name == corev1.ResourceMemory
	}
	for _, name := range sortedNames(r.Limits) {
		q := r.Limits[name]
		all = append(all, nameRule(limits.Key(string(name)), name)...)
		all = append(all, amount(limits.Key(string(name)), name, q)...)
		note(name)
	}
	for _, name := range sortedNames(r.Requests) {
		q := r.Requests[name]
		all = append(all, nameRule(requests.Key(string(name)), name)...)
		all = append(all, amount(requests.Key(string(name)), name, q)...)
		limit, limited := r.Limits[name]
		switch {
		case limited && q.Cmp(limit) > 0:
			all = append(all, field.Invalid(requests, q.String(),
				fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		case limited && q.Cmp(limit) != 0 && !canOvercommit(name):
			all = append(all, field.Invalid(requests, q.String(),
				fmt.Sprintf("must be equal to %s limit of %s", name, limit.String())))
		case !limited && !canOvercommit(name):
			all = append(all, field.Required(limits, "Limit must be set for non overcommitable resources"))
		}
		note(name)
	}
	if hugePages && !company {
		all = append(all, field.Forbidden(path, "HugePages require cpu or memory"))
	}
	return all
}

// ValidateAmounts checks the names and amounts of one list, as of limit ranges, quotas and overhead.
func ValidateAmounts(list corev1.ResourceList, nameRule func(*field.Path, corev1.ResourceName) field.ErrorList,
	path *field.Path) (all field.ErrorList) {
	for _, name := range sortedNames(list) {
		all = append(all, nameRule(path.Key(string(name)), name)...)
		all = append(all, amount(path.Key(string(name)), name, list[name])...)
	}
	return all
}

// ContainerResourceName says whether a container can ask for a resource of that name.
func ContainerResourceName(path *field.Path, name corev1.ResourceName) field.ErrorList {
	all := qualifiedName(path, string(name))
	if len(all) > 0 {
		return all
	}
	if !strings.Contains(string(name), "/") {
		switch {
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
			isHugePages(name):
			return nil
		}
		return errs{field.Invalid(path, string(name), "must be a standard resource for containers")}
	}
	if !isNative(name) && !IsExtended(name) {
		return errs{field.Invalid(path, string(name), "doesn't follow extended resource name standard")}
	}
	return nil
}

// isNative: the names that Kubernetes keeps for itself.
func isNative(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// IsExtended: a vendor's resource, counted in whole pieces.
func IsExtended(name corev1.ResourceName) bool {
	if isNative(name) || strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(qualifiedName(field.NewPath("name"), corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// canOvercommit: whether more may be limited than is requested.
func canOvercommit(name corev1.ResourceName) bool { return isNative(name) && !isHugePages(name) }

// amount: not negative; vendors' resources in whole pieces; hugepages in whole pages.
func amount(path *field.Path, name corev1.ResourceName, q resource.Quantity) errs {
	if q.Sign() < 0 {
		return errs{field.Invalid(path, q.String(), "must be greater than or equal to 0")}
	}
	if IsExtended(name) && !isWhole(q) {
		return errs{field.Invalid(path, q.String(), "must be an integer")}
	}
	if !isHugePages(name) {
		return nil
	}
	size, err := quantities.Parse(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	if err != nil || size.Sign() <= 0 {
		return errs{field.Invalid(path, string(name), "must be hugepages-<size> with a size such as 2Mi")}
	}
	if n := size.Value(); n <= 0 || !isWhole(q) || q.Value()%n != 0 {
		return errs{field.Invalid(path, q.String(), fmt.Sprintf("%s is not positive integer multiple of %s", q.String(),
			name))}
	}
	return nil
}

// isWhole: no fraction of one.
func isWhole(q resource.Quantity) bool {
	rounded := q.DeepCopy()
	return rounded.RoundUp(0)
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(list))
}

// resizePolicy: what a change of CPU or memory does to the container.
func (s *scope) resizePolicy(list []corev1.ContainerResizePolicy, path *field.Path) (all errs) {
	names := seen{}
	for i, p := range list { // of which entry is Kubernetes' to say, and it does so only of duplicates
		all = append(all, oneOf(path, p.ResourceName, corev1.ResourceCPU, corev1.ResourceMemory)...)
		all = append(all, names.unique(path.Index(i), string(p.ResourceName))...)
		all = append(all, oneOf(path, p.RestartPolicy, corev1.NotRequired, corev1.RestartContainer)...)
		if s.spec.RestartPolicy == corev1.RestartPolicyNever && p.RestartPolicy != corev1.NotRequired {
			all = append(all, field.Invalid(path, p.RestartPolicy,
				"must be 'NotRequired' when `restartPolicy` is 'Never'"))
		}
	}
	return all
}

// HugePagesInCompany refuses huge pages without processors or memory beside them.
func HugePagesInCompany(list corev1.ResourceList, path *field.Path) field.ErrorList {
	_, cpu := list[corev1.ResourceCPU]
	_, memory := list[corev1.ResourceMemory]
	if !cpu && !memory && slices.ContainsFunc(sortedNames(list), isHugePages) {
		return errs{field.Forbidden(path, "HugePages require cpu or memory")}
	}
	return nil
}

// podResources: amounts for the Pod as a whole (KEP-2837), and the overhead of its runtime class.
func (s *scope) podResources() errs {
	all := ValidateAmounts(s.spec.Overhead, ContainerResourceName, s.path.Child("overhead"))
	all = append(all, HugePagesInCompany(s.spec.Overhead, s.path.Child("overhead"))...)
	r, path := s.spec.Resources, s.path.Child("resources")
	if r == nil {
		return all
	}
	if len(r.Claims) > 0 {
		all = append(all, field.Forbidden(path.Child("claims"), "claims may not be set for Resources at pod-level"))
	}
	all = append(all, ValidateRequirements(r, podResourceName, path)...)
	pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: s.spec.InitContainers, Containers: s.spec.Containers}}
	asked := EffectiveRequests(pod)
	for _, name := range sortedNames(r.Requests) {
		q := r.Requests[name]
		if sum, ok := asked[name]; ok && sum.Cmp(q) > 0 {
			all = append(all, field.Invalid(path.Child("requests").Key(string(name)), q.String(),
				fmt.Sprintf("must be greater than or equal to aggregate container requests of %s", sum.String())))
		}
	}
	for ref := range containersBelow(s.spec, s.path) {
		for _, name := range sortedNames(ref.Container.Resources.Limits) {
			q := ref.Container.Resources.Limits[name]
			if limit, ok := r.Limits[name]; ok && q.Cmp(limit) > 0 {
				all = append(all, field.Invalid(ref.Path().Child("resources", "limits").Key(string(name)), q.String(),
					fmt.Sprintf("must be less than or equal to pod limits of %s", limit.String())))
			}
		}
	}
	return all
}

func podResourceName(path *field.Path, name corev1.ResourceName) field.ErrorList {
	if isPodLevelResource(name) {
		return qualifiedName(path, string(name))
	}
	return errs{field.NotSupported(path, string(name), []string{"cpu", "memory", "hugepages-<size>"})}
}

// resourceClaims: claims on devices (KEP-4381).
func (s *scope) resourceClaims() (all errs) {
	path := s.path.Child("resourceClaims")
	names := seen{}
	for i, c := range s.spec.ResourceClaims {
		at := path.Index(i)
		all = append(all, dnsLabel(at.Child("name"), c.Name)...)
		all = append(all, names.unique(at.Child("name"), c.Name)...)
		switch {
		case c.ResourceClaimName != nil && c.ResourceClaimTemplateName != nil:
			all = append(all,
				field.Invalid(at, c.Name,
					"at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"))
		case c.ResourceClaimName == nil && c.ResourceClaimTemplateName == nil:
			all = append(all,
				field.Invalid(at, c.Name, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"))
		}
		if c.ResourceClaimName != nil {
			all = append(all, dnsSubdomain(at.Child("resourceClaimName"), *c.ResourceClaimName)...)
		}
		if c.ResourceClaimTemplateName != nil {
			all = append(all, dnsSubdomain(at.Child("resourceClaimTemplateName"), *c.ResourceClaimTemplateName)...)
		}
	}
	return all
}
