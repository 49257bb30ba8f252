// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// SetDefaults fills every field of the Pod that has a default in Kubernetes 1.37. It is idempotent. What
// Kubernetes leaves to admission (the service account, its token volume, the standard tolerations,
// priority) is left alone here too.
func SetDefaults(pod *corev1.Pod) {
	spec := &pod.Spec
	for i := range spec.InitContainers {
		defaultRequests(&spec.InitContainers[i].Resources)
	}
	for i := range spec.Containers {
		defaultRequests(&spec.Containers[i].Resources)
	}
	if spec.EnableServiceLinks == nil {
		spec.EnableServiceLinks = new(true)
	}
	if spec.HostNetwork {
		defaultHostPorts(spec.InitContainers)
		defaultHostPorts(spec.Containers)
	}
	SetDefaultsSpec(spec)
	if *spec.TerminationGracePeriodSeconds < 0 {
		// a mistake that old objects have; templates keep it, and are warned about
		spec.TerminationGracePeriodSeconds = new(int64(1))
	}
	defaultStatus(&pod.Status)
}

// defaultStatus rounds amounts to what can be stored, and lets podIP be the first of podIPs, or their only one: older
// clients know nothing but podIP.
func defaultStatus(s *corev1.PodStatus) {
	RoundAmounts(s.AllocatedResources)
	if s.Resources != nil {
		RoundAmounts(s.Resources.Limits)
		RoundAmounts(s.Resources.Requests)
	}
	for _, c := range Statuses(s) {
		RoundAmounts(c.AllocatedResources)
		if c.Resources != nil {
			RoundAmounts(c.Resources.Limits)
			RoundAmounts(c.Resources.Requests)
		}
	}
	switch {
	case s.PodIP == "" && len(s.PodIPs) > 0:
		s.PodIP = s.PodIPs[0].IP
	case s.PodIP != "" && (len(s.PodIPs) == 0 || s.PodIPs[0].IP != s.PodIP):
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
}

// SetDefaultsSpec fills the defaults that a Pod shares with pod templates. The others (requests taken from
// limits, enableServiceLinks, host ports) are given to the Pod when it is made.
func SetDefaultsSpec(spec *corev1.PodSpec) {
	orElse(&spec.DNSPolicy, corev1.DNSClusterFirst)
	orElse(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	orElse(&spec.SchedulerName, corev1.DefaultSchedulerName)
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
	}
	// serviceAccount is the old name of serviceAccountName; both are always written, the new one wins.
	orElse(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	RoundAmounts(spec.Overhead)
	if spec.Resources != nil {
		RoundAmounts(spec.Resources.Limits)
		RoundAmounts(spec.Resources.Requests)
	}
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
	for ref := range Containers(spec) {
		defaultContainer(ref.Container)
	}
}

func orElse[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

func orPointTo[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

func defaultContainer(c *corev1.Container) {
	orElse(&c.ImagePullPolicy, pullPolicyFor(c.Image))
	orElse(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	orElse(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		orElse(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		defaultEnvSource(c.Env[i].ValueFrom)
	}
	RoundAmounts(c.Resources.Limits)
	RoundAmounts(c.Resources.Requests)
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(probe)
	}
	if c.Lifecycle != nil {
		for _, handler := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if handler != nil {
				defaultHTTPGet(handler.HTTPGet)
			}
		}
	}
}

// pullPolicyFor is Always for an image that names the tag latest or neither tag nor digest, else
// IfNotPresent, also for what is no image name at all.
func pullPolicyFor(image string) corev1.PullPolicy {
	if IsToolbox(image) { // it is there, and no registry has it (DC-01)
		return corev1.PullIfNotPresent
	}
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return corev1.PullIfNotPresent
	}
	tagged, ok := named.(reference.Tagged)
	if ok && tagged.Tag() == "latest" || reference.IsNameOnly(named) {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func defaultEnvSource(from *corev1.EnvVarSource) {
	if from == nil {
		return
	}
	defaultFieldRef(from.FieldRef)
	if from.FileKeyRef != nil {
		orPointTo(&from.FileKeyRef.Optional, false)
	}
}

func defaultFieldRef(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		orElse(&ref.APIVersion, "v1")
	}
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	orElse(&p.TimeoutSeconds, 1)
	orElse(&p.PeriodSeconds, 10)
	orElse(&p.SuccessThreshold, 1)
	orElse(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		orPointTo(&p.GRPC.Service, "")
	}
}

func defaultHTTPGet(get *corev1.HTTPGetAction) {
	if get == nil {
		return
	}
	orElse(&get.Path, "/")
	orElse(&get.Scheme, corev1.URISchemeHTTP)
}

// defaultRequests requests what is limited and not requested.
func defaultRequests(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}

func defaultHostPorts(containers []corev1.Container) {
	for i := range containers {
		for j := range containers[i].Ports {
			p := &containers[i].Ports[j]
			orElse(&p.HostPort, p.ContainerPort)
		}
	}
}

// RoundAmounts rounds amounts up to whole thousandths: finer ones cannot be stored.
func RoundAmounts(list corev1.ResourceList) {
	for name, q := range list {
		rounded := q.DeepCopy()
		rounded.RoundUp(resource.Milli)
		list[name] = rounded
	}
}
