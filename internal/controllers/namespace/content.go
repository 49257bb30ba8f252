// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// content is what was found in a namespace on one round of emptying it.
type content struct {
	discovery  error
	deletion   []error
	left       map[string]int // objects by resource
	finalizers map[string]int // objects by finalizer
}

func newContent() *content { return &content{left: map[string]int{}, finalizers: map[string]int{}} }

func (c *content) failed(r schema.GroupVersionResource, err error) {
	c.deletion = append(c.deletion, fmt.Errorf("%s: %w", r.GroupResource(), err))
}

func (c *content) stays(r schema.GroupVersionResource, finalizers []string) {
	c.left[r.GroupResource().String()]++
	for _, f := range finalizers {
		c.finalizers[f]++
	}
}

func (c *content) empty() bool { return len(c.left) == 0 }

// onlyPods is true when nothing but pods is left, of which informers notify.
func (c *content) onlyPods() bool { return len(c.left) == 1 && c.left["pods"] > 0 }

// problem is what went wrong, for a retry.
func (c *content) problem() error {
	return errors.Join(append([]error{c.discovery}, c.deletion...)...)
}

func (c *content) remaining() string {
	return list(c.left, func(resource string, n int) string { return fmt.Sprintf("%d %s", n, resource) })
}

func list(counts map[string]int, item func(string, int) string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, item(name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

// conditions shows how the deletion stands, in the words of Kubernetes.
func (c *content) conditions() []corev1.NamespaceCondition {
	var parse *groupVersionError
	unparsed := errors.As(c.discovery, &parse)
	out := []corev1.NamespaceCondition{
		{Type: corev1.NamespaceDeletionDiscoveryFailure, Reason: "ResourcesDiscovered",
			Message: "All resources successfully discovered"},
		{Type: corev1.NamespaceDeletionGVParsingFailure, Reason: "ParsedGroupVersions",
			Message: "All legacy kube types successfully parsed"},
		{Type: corev1.NamespaceDeletionContentFailure, Reason: "ContentDeleted",
			Message: "All content successfully deleted, may be waiting on finalization"},
		{Type: corev1.NamespaceContentRemaining, Reason: "ContentRemoved", Message: "All content successfully removed"},
		{Type: corev1.NamespaceFinalizersRemaining, Reason: "ContentHasNoFinalizers",
			Message: "All content-preserving finalizers finished"},
	}
	set := func(i int, reason, message string) {
		out[i].Status, out[i].Reason, out[i].Message = corev1.ConditionTrue, reason, message
	}
	for i := range out {
		out[i].Status = corev1.ConditionFalse
	}
	if c.discovery != nil && !unparsed {
		set(0, "DiscoveryFailed", "Discovery failed for some groups: "+c.discovery.Error())
	}
	if unparsed {
		set(1, "GroupVersionParsingFailed", parse.Error())
	}
	if len(c.deletion) > 0 {
		set(2, "ContentDeletionFailed", "Failed to delete all resource types, "+errors.Join(c.deletion...).Error())
	}
	if len(c.left) > 0 {
		set(3, "SomeResourcesRemain", "Some resources are remaining: "+list(c.left, func(r string, n int) string {
			return fmt.Sprintf("%s. has %d resource instances", r, n)
		}))
	}
	if len(c.finalizers) > 0 {
		set(4, "SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: "+
			list(c.finalizers, func(f string, n int) string {
				return fmt.Sprintf("%s in %d resource instances", f, n)
			}))
	}
	return out
}

// setConditions puts conditions into a status and says whether that changed it. A condition that was never anything
// but false is kept out until something is the matter, as an emptied namespace has nothing to report.
func setConditions(s *corev1.NamespaceStatus, conditions []corev1.NamespaceCondition, now metav1.Time) (changed bool) {
	trouble := slices.ContainsFunc(conditions,
		func(c corev1.NamespaceCondition) bool { return c.Status == corev1.ConditionTrue })
	if !trouble && len(s.Conditions) == 0 {
		return false
	}
	for _, c := range conditions {
		c.LastTransitionTime = now
		i := slices.IndexFunc(s.Conditions, func(have corev1.NamespaceCondition) bool { return have.Type == c.Type })
		if i < 0 {
			s.Conditions, changed = append(s.Conditions, c), true
			continue
		}
		have := &s.Conditions[i]
		if have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message {
			continue
		}
		if have.Status == c.Status {
			c.LastTransitionTime = have.LastTransitionTime
		}
		*have, changed = c, true
	}
	return changed
}
