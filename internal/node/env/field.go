// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/podspec"
)

// FieldValue is the value of a metadata or spec field of a pod as the downward API shows it, in files and variables
// alike: metadata.name, namespace, uid, labels, annotations (whole or by ['key']), spec.nodeName,
// spec.serviceAccountName. Whole maps are lines of key="quoted value", sorted. An absent label or annotation is the
// empty string. Addresses are not here: they are not known from the object alone (see Build).
func FieldValue(pod *corev1.Pod, path string) (string, error) {
	if field, key, ok := subscript(path); ok {
		switch field {
		case "metadata.labels":
			return pod.Labels[key], nil
		case "metadata.annotations":
			return pod.Annotations[key], nil
		}
		return "", fmt.Errorf("unsupported fieldPath %q: only metadata.labels and metadata.annotations take a ['key']",
			path)
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return lines(pod.Labels), nil
	case "metadata.annotations":
		return lines(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	}
	return "", fmt.Errorf("unsupported fieldPath %q", path)
}

// subscript takes metadata.labels['key'] apart.
func subscript(path string) (field, key string, ok bool) {
	field, rest, found := strings.Cut(path, "['")
	if !found || !strings.HasSuffix(rest, "']") {
		return "", "", false
	}
	return field, strings.TrimSuffix(rest, "']"), true
}

func lines(m map[string]string) string {
	out := make([]string, 0, len(m))
	for k, v := range m {
		out = append(out, k+"="+strconv.Quote(v))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// ResourceValue is the value of a resourceFieldRef of a container of the pod: the amount divided by the divisor and
// rounded up. A limit that is not set counts as the pod's own limit, and without that as what the node can give
// (allocatable); a request that is not set is 0. The container is ref.ContainerName, or self when that is empty.
func ResourceValue(pod *corev1.Pod, self string, ref *corev1.ResourceFieldSelector,
	allocatable corev1.ResourceList) (string, error) {
	name := ref.ContainerName
	if name == "" {
		name = self
	}
	res := resourcesOf(pod, name)
	if res == nil {
		return "", fmt.Errorf("resourceFieldRef %s names container %q, which the pod does not have", ref.Resource, name)
	}
	kind, what, _ := strings.Cut(ref.Resource, ".")
	resourceName := corev1.ResourceName(what)
	var amount resource.Quantity
	switch kind {
	case "limits":
		amount = limit(pod, *res, resourceName, allocatable)
	case "requests":
		amount = res.Requests[resourceName]
	default:
		return "", fmt.Errorf("unsupported resourceFieldRef %q: it starts with limits. or requests.", ref.Resource)
	}
	switch {
	case resourceName == corev1.ResourceCPU, resourceName == corev1.ResourceMemory,
		resourceName == corev1.ResourceEphemeralStorage,
		strings.HasPrefix(what, corev1.ResourceHugePagesPrefix):
		return divide(amount, ref.Divisor), nil
	}
	return "", fmt.Errorf("unsupported resourceFieldRef %q: known are cpu, memory, ephemeral-storage and hugepages-*",
		ref.Resource)
}

// limit falls back for the three resources every node has; huge pages that are not asked for are simply none.
func limit(pod *corev1.Pod, res corev1.ResourceRequirements, name corev1.ResourceName,
	allocatable corev1.ResourceList) resource.Quantity {
	q, set := res.Limits[name]
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
	default:
		return q
	}
	if set && !q.IsZero() {
		return q
	}
	if pod.Spec.Resources != nil {
		if q, ok := pod.Spec.Resources.Limits[name]; ok && !q.IsZero() {
			return q
		}
	}
	return allocatable[name]
}

// divide works on exact decimals, so that 1500m of cpu by 1m, 1Gi by 1Mi and 1 byte by 1Gi are all what one expects.
func divide(q, divisor resource.Quantity) string {
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	a, _ := new(big.Rat).SetString(q.AsDec().String())
	b, _ := new(big.Rat).SetString(divisor.AsDec().String())
	r := a.Quo(a, b)
	whole, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return whole.String()
}

func resourcesOf(pod *corev1.Pod, name string) *corev1.ResourceRequirements {
	if ref, ok := podspec.FindContainer(&pod.Spec, name); ok {
		return &ref.Container.Resources
	}
	return nil
}
