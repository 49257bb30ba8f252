// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Warnings says what is valid in a new Pod but surely not what its author means: things that are overwritten, former
// names that nobody reads any more, names that lead to surprises. In the words of Kubernetes; a client shows them, and
// the pod is made.
func Warnings(pod *corev1.Pod) (all []string) {
	spec := field.NewPath("spec")
	if errs := validation.IsDNS1123Label(pod.Name); pod.Name != "" && len(errs) > 0 {
		all = append(all,
			fmt.Sprintf("metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: %v", errs))
	}
	all = append(all, formerAnnotations(pod)...)
	for _, label := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		if now, ok := formerLabels()[label]; ok {
			all = append(all, fmt.Sprintf("%s: deprecated since v1.14; use %q instead",
				spec.Child("nodeSelector").Key(label), now))
		}
	}
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil && *s < 0 {
		all = append(all, spec.Child("terminationGracePeriodSeconds").String()+
			": must be >= 0; negative values are invalid and will be treated as 1")
	}
	// what is ours: Kubernetes says so only in the status
	if os := pod.Spec.OS; os != nil && os.Name == corev1.Windows {
		all = append(all, spec.Child("os", "name").String()+": Wherry's nodes run Linux and will reject the pod")
	}
	for i, s := range pod.Spec.ImagePullSecrets {
		if s.Name == "" {
			all = append(all, spec.Child("imagePullSecrets").Index(i).Child("name").String()+`: invalid empty name ""`)
		}
	}
	seen := map[string]bool{}
	for i, alias := range pod.Spec.HostAliases {
		for _, name := range alias.Hostnames {
			if seen[alias.IP+" "+name] {
				all = append(all, fmt.Sprintf("%s: duplicate entry %q for IP %s", spec.Child("hostAliases").Index(i),
					name, alias.IP))
			}
			seen[alias.IP+" "+name] = true
		}
	}
	for ref := range Containers(&pod.Spec) {
		all = append(all, containerWarnings(ref)...)
	}
	return append(all, volumeWarnings(&pod.Spec, spec)...)
}

// TemplateWarnings are those of a pod made from a template. path is where the template stands.
func TemplateWarnings(t *corev1.PodTemplateSpec, path *field.Path) []string {
	all := Warnings(&corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec})
	for i, said := range all { // each begins with a field of the pod
		all[i] = path.String() + "." + said
	}
	return all
}

// formerLabels are node labels that have other names now.
func formerLabels() map[string]string {
	return map[string]string{
		"beta.kubernetes.io/arch":                  corev1.LabelArchStable,
		"beta.kubernetes.io/os":                    corev1.LabelOSStable,
		"beta.kubernetes.io/instance-type":         corev1.LabelInstanceTypeStable,
		"failure-domain.beta.kubernetes.io/region": corev1.LabelTopologyRegion,
		"failure-domain.beta.kubernetes.io/zone":   corev1.LabelTopologyZone,
	}
}

// formerAnnotations are those that became fields.
func formerAnnotations(pod *corev1.Pod) (all []string) {
	path := field.NewPath("metadata", "annotations")
	for _, name := range slices.Sorted(maps.Keys(pod.Annotations)) {
		switch {
		case name == corev1.SeccompPodAnnotationKey, strings.HasPrefix(name,
			corev1.SeccompContainerAnnotationKeyPrefix):
			all = append(all,
				path.Key(name).String()+`: non-functional in v1.27+; use the "seccompProfile" field instead`)
		case strings.HasPrefix(name, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix):
			all = append(all,
				path.Key(name).String()+`: deprecated since v1.30; use the "appArmorProfile" field instead`)
		case name == "scheduler.alpha.kubernetes.io/critical-pod":
			all = append(all,
				path.Key(name).String()+`: non-functional in v1.16+; use the "priorityClassName" field instead`)
		}
	}
	return all
}

func containerWarnings(ref ContainerRef) (all []string) {
	c := ref.Container
	first := map[string]bool{}
	for i, e := range c.Env {
		if first[e.Name] {
			all = append(all, fmt.Sprintf("%s: hides previous definition of %q, which may be dropped when using apply",
				ref.Path().Child("env").Index(i), e.Name))
		}
		first[e.Name] = true
	}
	type port struct {
		number   int32
		protocol corev1.Protocol
		host     int32
		ip       string
	}
	taken := map[port]int{}
	for i, p := range c.Ports {
		at := port{p.ContainerPort, p.Protocol, p.HostPort, p.HostIP}
		if before, ok := taken[at]; ok {
			all = append(all, fmt.Sprintf("%s: duplicate port definition with %s", ref.Path().Child("ports").Index(i),
				ref.Path().Child("ports").Index(before)))
		} else {
			taken[at] = i
		}
	}
	for _, list := range []struct {
		name      string
		resources corev1.ResourceList
	}{{"limits", c.Resources.Limits}, {"requests", c.Resources.Requests}} {
		for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
			if q, ok := list.resources[name]; ok && fractional(q) {
				all = append(all, fmt.Sprintf("%s: fractional byte value %q is invalid, must be an integer",
					ref.Path().Child("resources", list.name).Key(string(name)), q.String()))
			}
		}
	}
	return all
}

func fractional(q resource.Quantity) bool { return q.MilliValue()%1000 != 0 }

func volumeWarnings(spec *corev1.PodSpec, path *field.Path) (all []string) {
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		if e := v.EmptyDir; e != nil && e.SizeLimit != nil && fractional(*e.SizeLimit) {
			all = append(all, fmt.Sprintf("%s: fractional byte value %q is invalid, must be an integer",
				path.Child("volumes").Index(i).Child("emptyDir", "sizeLimit"), e.SizeLimit.String()))
		}
	}
	return all
}
