// SPDX-License-Identifier: Apache-2.0

package limitrange

import (
	"fmt"
	"iter"
	"maps"
	"math/big"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Check returns everything in a pod that is outside the ranges, in the words of Kubernetes; what is said of a container
// names it.
func Check(pod *corev1.Pod, ranges []corev1.LimitRange) (all []error) {
	for item := range items(ranges) {
		switch item.Type {
		case corev1.LimitTypePod:
			own := *pod
			own.Spec.Overhead = nil // the runtime class's; bounds are about what the pod's author asks for
			all = append(all, subject{
				requests: podspec.EffectiveRequests(&own), limits: podspec.EffectiveLimits(&own),
			}.check(item)...)
		case corev1.LimitTypeContainer:
			for ref := range podspec.Containers(&pod.Spec) {
				if ref.Kind == podspec.Ephemeral {
					continue
				}
				r := ref.Container.Resources
				all = append(all, subject{requests: r.Requests, limits: r.Limits,
					where: " (" + who(ref) + ")"}.check(item)...)
			}
		}
	}
	return all
}

func items(ranges []corev1.LimitRange) iter.Seq[*corev1.LimitRangeItem] {
	return func(yield func(*corev1.LimitRangeItem) bool) {
		for i := range ranges {
			for j := range ranges[i].Spec.Limits {
				if !yield(&ranges[i].Spec.Limits[j]) {
					return
				}
			}
		}
	}
}

// subject is what is held against a range: a container or a pod.
type subject struct {
	requests, limits corev1.ResourceList
	where            string
}

func (s subject) check(item *corev1.LimitRangeItem) (all []error) {
	refuse := func(format string, args ...any) { all = append(all, fmt.Errorf(format+s.where, args...)) }
	for _, name := range slices.Sorted(maps.Keys(item.Min)) {
		least := item.Min[name]
		request, asked := s.requests[name]
		limit, limited := s.limits[name]
		switch {
		case !asked:
			refuse("minimum %s usage per %s is %s.  No request is specified", name, item.Type, &least)
		case request.Cmp(least) < 0:
			refuse("minimum %s usage per %s is %s, but request is %s", name, item.Type, &least, &request)
		case limited && limit.Cmp(least) < 0:
			refuse("minimum %s usage per %s is %s, but limit is %s", name, item.Type, &least, &limit)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		most := item.Max[name]
		request, asked := s.requests[name]
		limit, limited := s.limits[name]
		switch {
		case !limited:
			refuse("maximum %s usage per %s is %s.  No limit is specified", name, item.Type, &most)
		case limit.Cmp(most) > 0:
			refuse("maximum %s usage per %s is %s, but limit is %s", name, item.Type, &most, &limit)
		case asked && request.Cmp(most) > 0:
			refuse("maximum %s usage per %s is %s, but request is %s", name, item.Type, &most, &request)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.MaxLimitRequestRatio)) {
		ratio, request, limit := item.MaxLimitRequestRatio[name], s.requests[name], s.limits[name]
		switch {
		case request.IsZero():
			refuse("%s max limit to request ratio per %s is %s, but no request is specified or request is 0", name,
				item.Type, &ratio)
		case limit.IsZero():
			refuse("%s max limit to request ratio per %s is %s, but no limit is specified or limit is 0", name,
				item.Type, &ratio)
		default:
			have := new(big.Rat).Quo(exact(limit), exact(request))
			if have.Cmp(exact(ratio)) > 0 {
				refuse("%s max limit to request ratio per %s is %s, but provided ratio is %s", name, item.Type, &ratio,
					have.FloatString(6))
			}
		}
	}
	return all
}

// exact is the number a quantity stands for, without rounding.
func exact(q resource.Quantity) *big.Rat {
	q = q.DeepCopy() // AsDec changes how the number is kept
	d := q.AsDec()
	r := new(big.Rat).SetInt(d.UnscaledBig())
	scale := int64(d.Scale()) // digits behind the point; below zero, zeros before it
	shift := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(max(scale, -scale)), nil))
	if scale < 0 {
		return r.Mul(r, shift)
	}
	return r.Quo(r, shift)
}
