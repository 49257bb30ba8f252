// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// sidecarName is the name of the container that is put into pods.
const sidecarName = "injected-sidecar"

// Operation is one operation of a JSON patch, RFC 6902.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Patch puts the sidecar before a pod's init containers, so that it has started before the first of them runs. It
// returns nil for a pod that has it: the API server may ask twice about one pod.
func Patch(pod *corev1.Pod, sidecar corev1.Container) []Operation {
	if slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == sidecar.Name }) {
		return nil
	}
	if len(pod.Spec.InitContainers) == 0 { // there is no list to put it into
		return []Operation{{Op: "add", Path: "/spec/initContainers", Value: []corev1.Container{sidecar}}}
	}
	return []Operation{{Op: "add", Path: "/spec/initContainers/0", Value: sidecar}}
}

// sidecar is the container: an init container that is restarted whenever it ends, and that the next one waits for until
// its startup probe has succeeded.
func sidecar(image string) corev1.Container {
	always := corev1.ContainerRestartPolicyAlways
	return corev1.Container{
		Name: sidecarName, Image: image, Args: []string{"sidecar"}, RestartPolicy: &always,
		ImagePullPolicy: corev1.PullIfNotPresent, StartupProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/",
				Port: intstr.FromInt32(15000)}},
			PeriodSeconds: 1,
		},
	}
}
