// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// part is a table of the page.
type part struct {
	title, prefix string
	of            reflect.Type
	into          func(path string) bool
	in            func(*corev1.Pod) reflect.Value // the part of a pod that has these fields
}

func parts() []part {
	below := func(names ...string) func(string) bool {
		return func(path string) bool {
			for _, n := range names {
				if path == n {
					return true
				}
			}
			return false
		}
	}
	mainOf := func(p *corev1.Pod) *corev1.Container { return &p.Spec.Containers[0] }
	return []part{
		{"PodSpec", "spec.", reflect.TypeFor[corev1.PodSpec](), below("spec.os", "spec.dnsConfig"),
			func(p *corev1.Pod) reflect.Value { return reflect.ValueOf(&p.Spec) }},
		{"PodSecurityContext", "spec.securityContext.", reflect.TypeFor[corev1.PodSecurityContext](), below(),
			func(p *corev1.Pod) reflect.Value {
				p.Spec.SecurityContext = &corev1.PodSecurityContext{}
				return reflect.ValueOf(p.Spec.SecurityContext)
			}},
		{"Container", "containers[].", reflect.TypeFor[corev1.Container](), below("containers[].env[]",
			"containers[].env[].valueFrom", "containers[].envFrom[]", "containers[].volumeMounts[]",
			"containers[].ports[]", "containers[].lifecycle", "containers[].resources"),
			func(p *corev1.Pod) reflect.Value { return reflect.ValueOf(mainOf(p)) }},
		{"SecurityContext", "containers[].securityContext.", reflect.TypeFor[corev1.SecurityContext](), below(),
			func(p *corev1.Pod) reflect.Value {
				mainOf(p).SecurityContext = &corev1.SecurityContext{}
				return reflect.ValueOf(mainOf(p).SecurityContext)
			}},
		{"Probe", "containers[].livenessProbe.", reflect.TypeFor[corev1.Probe](), func(string) bool { return true },
			func(p *corev1.Pod) reflect.Value {
				mainOf(p).LivenessProbe = &corev1.Probe{}
				return reflect.ValueOf(mainOf(p).LivenessProbe)
			}},
		{"Volume", "volumes[].", reflect.TypeFor[corev1.Volume](), func(path string) bool {
			return below("volumes[].emptyDir", "volumes[].hostPath", "volumes[].configMap", "volumes[].secret",
				"volumes[].downwardAPI", "volumes[].image", "volumes[].projected",
				"volumes[].projected.sources[]")(path) ||
				strings.HasSuffix(path, ".items[]")
		}, func(p *corev1.Pod) reflect.Value {
			p.Spec.Volumes = make([]corev1.Volume, 1)
			return reflect.ValueOf(&p.Spec.Volumes[0])
		}},
	}
}

// onlyFor are fields of which only a value is refused.
func onlyFor() map[string]string {
	return map[string]string{"volumes[].emptyDir.medium": "HugePages-2Mi"}
}

// byNode are fields of which the API server takes every value, and nodes do not.
func byNode() map[string]string {
	return map[string]string{"spec.os.name": "`windows`: the node rejects the pod with `PodOSNotSupported`"}
}

// Page makes the page.
func Page() string {
	var b strings.Builder
	b.WriteString("# The fields of a pod\n\nWritten by `make generate` from Kubernetes' Go types: what the API server does " +
		"with each field of a pod. *Refused* fields are refused by name, with the words that follow; where only the " +
		"machine can tell, as with AppArmor, the node refuses. The tests are listed by rule in " +
		"[behaviour.md](behaviour.md).\n")
	for _, p := range parts() {
		fmt.Fprintf(&b, "\n## %s\n\n| field | what becomes of it |\n|---|---|\n", p.title)
		for _, f := range walk(p.of, p.prefix, nil, p.into) {
			fmt.Fprintf(&b, "| `%s` | %s |\n", f.path, verdict(p, f))
		}
	}
	return b.String()
}

// verdict asks what becomes of a pod with this field.
func verdict(p part, f field) string {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 1)}}
	v := reach(p.in(pod).Elem(), f.way)
	value, only := onlyFor()[f.path]
	if only {
		v.SetString(value)
	} else {
		fill(v)
	}
	refused := podspec.Unsupported(pod)
	if words, ok := byNode()[f.path]; ok && len(refused) == 0 {
		return "honoured; " + words
	} else if len(refused) == 0 {
		return "honoured"
	}
	words := strings.TrimPrefix(refused[0].Detail, "not supported yet: ")
	if only {
		return fmt.Sprintf("honoured; `%s` is refused: %s", value, words)
	}
	return "refused: " + words
}
