// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/test/images"
)

// NewPod makes a pod of containers named main, second, third, unless they have names. Its grace is short, so that tests
// are. Change the result as the test needs it.
func NewPod(name string, mains ...corev1.Container) *corev1.Pod {
	grace := int64(2)
	for i := range mains {
		if mains[i].Name == "" {
			mains[i].Name = []string{"main", "second", "third"}[i]
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: mains, TerminationGracePeriodSeconds: &grace},
	}
}

// Never makes a pod whose containers are not restarted.
func Never(name string, mains ...corev1.Container) *corev1.Pod {
	p := NewPod(name, mains...)
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	return p
}

// Tool is a container of the tests' tool; see test/images/tool for what it can do.
func Tool(args ...string) corev1.Container {
	return corev1.Container{Image: images.ToolRef, Args: args}
}

// Sh is a container that runs a shell script in busybox.
func Sh(script string) corev1.Container {
	return corev1.Container{Image: images.BusyboxRef, Command: []string{"sh", "-c", script}}
}

// Named names a container.
func Named(name string, c corev1.Container) corev1.Container {
	c.Name = name
	return c
}

// Idle is a script for [Sh] that sleeps until SIGTERM and then ends at once.
const Idle = "trap 'exit 0' TERM; while :; do sleep 3600 & wait; done"

// WithInit puts init containers before a pod's mains.
func WithInit(p *corev1.Pod, inits ...corev1.Container) *corev1.Pod {
	p.Spec.InitContainers = append(p.Spec.InitContainers, inits...)
	return p
}
