// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// spoiled is one row of the big tables: what is done to the good Pod, and what must be said about it.
type spoiled struct {
	name string // begins with the rule's id where there is one
	do   func(*corev1.Pod)
	path string
	kind field.ErrorType
	word string // part of the message
}

const (
	requiredErr     = field.ErrorTypeRequired
	invalidErr      = field.ErrorTypeInvalid
	duplicateErr    = field.ErrorTypeDuplicate
	notSupportedErr = field.ErrorTypeNotSupported
	forbiddenErr    = field.ErrorTypeForbidden
	notFoundErr     = field.ErrorTypeNotFound
	tooLongErr      = field.ErrorTypeTooLong
	tooManyErr      = field.ErrorTypeTooMany
)

func checkSpoiled(t *testing.T, rows []spoiled) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			pod := goodPod()
			row.do(pod)
			wantError(t, Validate(pod), row.path, row.kind, row.word)
		})
	}
}

func wantError(t *testing.T, got field.ErrorList, path string, kind field.ErrorType, word string) {
	t.Helper()
	for _, e := range got {
		if e.Field == path && e.Type == kind && strings.Contains(e.Error(), word) {
			return
		}
	}
	t.Errorf("want %s at %s with %q, got:", kind, path, word)
	for _, e := range got {
		t.Errorf("  %s %v", e.Type, e)
	}
}

// main returns the container most rows spoil.
func mainOf(p *corev1.Pod) *corev1.Container { return &p.Spec.Containers[0] }

// TestAccepted holds unusual Pods that must pass.
func TestAccepted(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(*corev1.Pod)
	}{
		{"duplicate env names", func(p *corev1.Pod) {
			mainOf(p).Env = []corev1.EnvVar{{Name: "A"}, {Name: "A", Value: "2"}}
		}},
		{"env name with dots and dashes", func(p *corev1.Pod) { mainOf(p).Env[0].Name = "a.b-c/d" }},
		{"same port twice", func(p *corev1.Pod) {
			mainOf(p).Ports = []corev1.ContainerPort{{ContainerPort: 80, Protocol: "TCP"}, {ContainerPort: 80, Protocol: "TCP"}}
		}},
		{"subscripted field", func(p *corev1.Pod) {
			mainOf(p).Env[1].ValueFrom.FieldRef.FieldPath = "metadata.annotations['Example.com/x']"
		}},
		{"tolerate all", func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: "Exists"}} }},
		{"toleration without operator", func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "a", Value: "b"}} }},
		{"empty pull secret", func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{}} }},
		{"search of one dot", func(p *corev1.Pod) { p.Spec.DNSConfig = &corev1.PodDNSConfig{Searches: []string{".", "_a.b."}} }},
		{"host port on two addresses", func(p *corev1.Pod) {
			mainOf(p).Ports = []corev1.ContainerPort{
				{ContainerPort: 80, HostPort: 80, HostIP: "127.0.0.1", Protocol: "TCP"},
				{ContainerPort: 80, HostPort: 80, HostIP: "127.0.0.2", Protocol: "TCP"},
			}
		}},
		{"SC-07 sidecar with probes and hooks", func(p *corev1.Pod) {
			p.Spec.InitContainers[1].StartupProbe = probe(nil)
			p.Spec.InitContainers[1].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"x"}}}}
		}},
		{"PID-01 hostPID alone", func(p *corev1.Pod) { p.Spec.HostPID, p.Spec.ShareProcessNamespace = true, new(false) }},
		{"SC-01 container restart rules", func(p *corev1.Pod) {
			mainOf(p).RestartPolicy = new(corev1.ContainerRestartPolicyNever)
			mainOf(p).RestartPolicyRules = []corev1.ContainerRestartRule{{Action: "Restart", ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: "In", Values: []int32{42}}}}
		}},
		{"stop signal", func(p *corev1.Pod) {
			p.Spec.OS = &corev1.PodOS{Name: "linux"}
			mainOf(p).Lifecycle = &corev1.Lifecycle{StopSignal: new(corev1.Signal("SIGRTMIN+3"))}
		}},
		{"hugepages", func(p *corev1.Pod) {
			mainOf(p).Resources.Limits["hugepages-2Mi"] = quantity("4Mi")
			mainOf(p).Resources.Requests["hugepages-2Mi"] = quantity("4Mi")
		}},
		{"extended resource", func(p *corev1.Pod) {
			mainOf(p).Resources.Limits["example.com/gpu"] = quantity("2")
			mainOf(p).Resources.Requests["example.com/gpu"] = quantity("2")
		}},
		{"slash sysctl", func(p *corev1.Pod) {
			p.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "net/ipv4/ip_local_port_range", Value: "1 2"}}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			pod := goodPod()
			row.do(pod)
			for _, e := range Validate(pod) {
				t.Error(e)
			}
		})
	}
}
