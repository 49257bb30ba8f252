// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/test/e2e"
)

// shape is a kind of pod and what becomes of it when it is left in peace. Its containers serve on the ports from the given one on.
type shape struct {
	name    string
	make    func(s *e2e.Stage, name string, port int32) *corev1.Pod
	settled func(*corev1.Pod) bool
}

func ready(p *corev1.Pod) bool { return e2e.Condition(p, corev1.PodReady) == corev1.ConditionTrue }

func succeeded(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded }

func over(p *corev1.Pod) bool { return succeeded(p) || p.Status.Phase == corev1.PodFailed }

func shapes() []shape {
	return []shape{
		{"plain", func(s *e2e.Stage, name string, port int32) *corev1.Pod {
			return s.Pod(name, s.Act("main"), s.Act("other", "-serve", at("tcp", port)))
		}, ready},
		{"full", func(s *e2e.Stage, name string, port int32) *corev1.Pod {
			return e2e.WithInit(s.Pod(name, e2e.Serving(s.Act("main", "-serve", at("http", port+1)), tcp(port+1))),
				s.Act("init-1", "-for", "50ms"),
				e2e.Sidecar(e2e.Starting(s.Act("side-1", "-wait", "100ms", "-serve", at("tcp", port+2)), tcp(port+2))),
				s.Act("init-2", "-for", "200ms"),
				e2e.Sidecar(e2e.PreStop(s.Act("side-2"), e2e.Tells("side-2", "pre"))))
		}, ready},
		{"never", func(s *e2e.Stage, name string, _ int32) *corev1.Pod {
			p := e2e.WithInit(s.Pod(name, s.Act("main", "-for", "4s")), e2e.Sidecar(s.Act("side")), s.Act("init", "-for", "50ms"))
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			return p
		}, over},
		{"onfailure", func(s *e2e.Stage, name string, _ int32) *corev1.Pod {
			p := e2e.WithInit(s.Pod(name, s.Act("main", "-for", "3s", "-crash", "1")), s.Act("init", "-for", "50ms"), e2e.Sidecar(s.Act("side", "-crash", "1")))
			p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			return p
		}, succeeded},
		{"shared", func(s *e2e.Stage, name string, _ int32) *corev1.Pod {
			p := e2e.WithInit(s.Pod(name, s.Act("main"), s.Act("other")), s.Act("init", "-for", "50ms"), e2e.Sidecar(s.Act("side")))
			p.Spec.ShareProcessNamespace = ptr.To(true)
			return p
		}, ready},
		{"slow", func(s *e2e.Stage, name string, port int32) *corev1.Pod {
			return e2e.WithInit(s.Pod(name, e2e.PreStop(s.Act("main", "-term", "500ms"), e2e.Tells("main", "pre", "-for", "300ms"))),
				e2e.Sidecar(e2e.Living(s.Act("side", "-term", "300ms", "-serve", at("grpc", port+3)), &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 20,
					ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: port + 3}}})),
				s.Act("init", "-for", "500ms"), e2e.Sidecar(s.Act("deaf", "-deaf")))
		}, ready},
	}
}

// ports is how many ports a pod may serve on.
const ports = 4

func at(protocol string, port int32) string { return fmt.Sprintf("%s:%d", protocol, port) }

func tcp(port int32) *corev1.Probe {
	return &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 20, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: e2e.Port(port)}}}
}
