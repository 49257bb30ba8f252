// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/internal/podspec"
)

// What is valid in a pod and hardly meant is told, in Kubernetes' words.
func TestWarnings(t *testing.T) {
	for name, test := range map[string]struct {
		pod  string
		want string // all warnings, joined by |
	}{
		"none": {"{metadata: {name: web}, spec: {containers: [{name: c, env: [{name: A}, {name: B}], ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]}]}}", ""},
		"env twice": {"{spec: {containers: [{name: c, env: [{name: A}, {name: B}, {name: A}]}]}}",
			`spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply`},
		"env twice in an init container": {"{spec: {initContainers: [{name: c, env: [{name: A}, {name: A}]}]}}",
			`spec.initContainers[0].env[1]: hides previous definition of "A", which may be dropped when using apply`},
		"port twice": {"{spec: {containers: [{name: c, ports: [{containerPort: 80, protocol: TCP}, {name: x, containerPort: 80, protocol: TCP}]}]}}",
			`spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]`},
		"old annotations": {"{metadata: {annotations: {seccomp.security.alpha.kubernetes.io/pod: x, container.apparmor.security.beta.kubernetes.io/c: y}}, spec: {}}",
			`metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the "appArmorProfile" field instead|` +
				`metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "seccompProfile" field instead`},
		"old labels": {"{spec: {nodeSelector: {beta.kubernetes.io/os: linux, a: b}}}",
			`spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead`},
		"half a byte": {"{spec: {containers: [{name: c, resources: {requests: {memory: 1500m, cpu: 100m}}}], volumes: [{name: v, emptyDir: {sizeLimit: 200m}}]}}",
			`spec.containers[0].resources.requests[memory]: fractional byte value "1500m" is invalid, must be an integer|` +
				`spec.volumes[0].emptyDir.sizeLimit: fractional byte value "200m" is invalid, must be an integer`},
		"grace below zero": {"{spec: {terminationGracePeriodSeconds: -1, imagePullSecrets: [{}]}}",
			`spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1|spec.imagePullSecrets[0].name: invalid empty name ""`},
		"windows": {"{spec: {os: {name: windows}}}", "spec.os.name: Wherry's nodes run Linux and will reject the pod"},
		"host twice": {"{spec: {hostAliases: [{ip: 10.0.0.1, hostnames: [a]}, {ip: 10.0.0.1, hostnames: [b, a]}]}}",
			`spec.hostAliases[1]: duplicate entry "a" for IP 10.0.0.1`},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			if err := yaml.UnmarshalStrict([]byte(test.pod), pod); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(podspec.Warnings(pod), "|"); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	dotted := &corev1.Pod{}
	dotted.Name = "a.b"
	if got := podspec.Warnings(dotted); len(got) != 1 || !strings.HasPrefix(got[0], "metadata.name: this is used in the Pod's hostname") {
		t.Errorf("a name with a dot: %q", got)
	}
}
