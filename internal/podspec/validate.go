// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate says all that is wrong with a Pod that is to be created. The Pod must have been through
// SetDefaults. An empty list means that Kubernetes' own rules are kept; whether this node can run the Pod
// is for Unsupported to say.
func Validate(pod *corev1.Pod) field.ErrorList {
	all := validateStored(pod)
	spec := field.NewPath("spec")
	if len(pod.Spec.EphemeralContainers) > 0 { // EC-02
		all = append(all, field.Forbidden(spec.Child("ephemeralContainers"), "cannot be set on create"))
	}
	if pod.Spec.NodeName != "" && len(pod.Spec.SchedulingGates) > 0 {
		all = append(all, field.Forbidden(spec.Child("nodeName"),
			"cannot be set until all schedulingGates have been cleared"))
	}
	return all
}

// validateStored holds the rules of a Pod at any time of its life, ephemeral containers included.
func validateStored(pod *corev1.Pod) field.ErrorList {
	meta := field.NewPath("metadata")
	all := apivalidation.ValidateObjectMeta(&pod.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, meta)
	all = append(all, finalizerNames(pod.Finalizers, meta.Child("finalizers"))...)
	all = append(all, validatePodAnnotations(pod, meta.Child("annotations"))...)
	spec := field.NewPath("spec")
	if g := pod.Spec.TerminationGracePeriodSeconds; g != nil { // of a template it is a warning
		all = append(all, nonNegative(spec.Child("terminationGracePeriodSeconds"), *g)...)
	}
	all = append(all, validateSpec(&pod.Spec, spec)...)
	return all
}

// ValidateTemplate says all that is wrong with a pod template, e.g. a Job's. path is where it stands.
func ValidateTemplate(t *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	meta, spec := path.Child("metadata"), path.Child("spec")
	all := unversioned.ValidateLabels(t.Labels, meta.Child("labels"))
	all = append(all, apivalidation.ValidateAnnotations(t.Annotations, meta.Child("annotations"))...)
	asPod := corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	all = append(all, validatePodAnnotations(&asPod, meta.Child("annotations"))...)
	all = append(all, validateSpec(&t.Spec, spec)...)
	if len(t.Spec.EphemeralContainers) > 0 {
		all = append(all, field.Forbidden(spec.Child("ephemeralContainers"),
			"ephemeral containers not allowed in pod template"))
	}
	return all
}

// scope is what the rules of a container need to know of the Pod around it.
type scope struct {
	spec    *corev1.PodSpec
	path    *field.Path
	volumes map[string]*corev1.Volume
	claims  map[string]bool // names of spec.resourceClaims
	grace   int64
}

func validateSpec(spec *corev1.PodSpec, path *field.Path) errs {
	s := &scope{spec: spec, path: path, volumes: map[string]*corev1.Volume{}, claims: map[string]bool{}}
	if spec.TerminationGracePeriodSeconds != nil {
		s.grace = *spec.TerminationGracePeriodSeconds
	}
	for i := range spec.Volumes {
		s.volumes[spec.Volumes[i].Name] = &spec.Volumes[i]
	}
	for i := range spec.ResourceClaims {
		s.claims[spec.ResourceClaims[i].Name] = true
	}
	return slices.Concat(
		s.lifetime(),
		s.allVolumes(),
		s.resourceClaims(),
		s.allContainers(),
		s.podResources(),
		s.identity(),
		s.names(),
		s.dns(),
		s.namespaces(),
		s.podSecurity(),
		s.operatingSystem(),
		s.scheduling(),
		s.conditions(),
		s.evictionResponders(),
	)
}

// lifetime: restartPolicy, deadlines, grace.
func (s *scope) lifetime() errs {
	spec, path := s.spec, s.path
	all := oneOf(path.Child("restartPolicy"), spec.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	if d := spec.ActiveDeadlineSeconds; d != nil {
		all = append(all, inRange(path.Child("activeDeadlineSeconds"), *d, 1, maxInt32)...)
	}
	return all
}

const maxInt32 int64 = 1<<31 - 1

// identity: service account and node. The names in imagePullSecrets are free: a secret that is not there
// is skipped at pull time, as in Kubernetes, so no name can be wrong.
func (s *scope) identity() (all errs) {
	spec, path := s.spec, s.path
	if spec.ServiceAccountName != "" {
		all = append(all, dnsSubdomain(path.Child("serviceAccountName"), spec.ServiceAccountName)...)
	}
	if spec.DeprecatedServiceAccount != spec.ServiceAccountName {
		all = append(all, field.Invalid(path.Child("serviceAccount"), spec.DeprecatedServiceAccount,
			"must be the same as `serviceAccountName`"))
	}
	if spec.NodeName != "" {
		all = append(all, dnsSubdomain(path.Child("nodeName"), spec.NodeName)...)
	}
	return all
}

// namespaces: what is shared with the machine and between containers.
func (s *scope) namespaces() (all errs) {
	spec, path := s.spec, s.path
	if spec.HostPID && isTrue(spec.ShareProcessNamespace) { // PID-01
		const words = "ShareProcessNamespace and HostPID cannot both be enabled"
		all = append(all,
			field.Invalid(path.Child("shareProcessNamespace"), true, words),
			field.Invalid(path.Child("hostPID"), true, words))
	}
	if isFalse(spec.HostUsers) {
		const words = "when `hostUsers` is false"
		for _, host := range []struct {
			name string
			on   bool
		}{{"hostNetwork", spec.HostNetwork}, {"hostPID", spec.HostPID}, {"hostIPC", spec.HostIPC}} {
			if host.on {
				all = append(all, field.Forbidden(path.Child(host.name), words))
			}
		}
		for ref := range containersBelow(spec, path) {
			if len(ref.Container.VolumeDevices) > 0 {
				all = append(all, field.Forbidden(ref.Path().Child("volumeDevices"), words))
			}
		}
	}
	if !spec.HostNetwork {
		return all
	}
	for ref := range containersBelow(spec, path) {
		for i, p := range ref.Container.Ports {
			if ref.Kind != Ephemeral && p.HostPort != 0 && p.HostPort != p.ContainerPort {
				all = append(all, field.Invalid(ref.Path().Child("ports").Index(i).Child("hostPort"), p.HostPort,
					"must match `containerPort` when `hostNetwork` is true"))
			}
		}
	}
	return all
}

// conditions: readinessGates.
func (s *scope) conditions() (all errs) {
	for i, gate := range s.spec.ReadinessGates {
		path := s.path.Child("readinessGates").Index(i).Child("conditionType")
		all = append(all, qualifiedName(path, string(gate.ConditionType))...)
	}
	return all
}

// evictionResponders (KEP-4563): who is asked before the Pod is evicted.
func (s *scope) evictionResponders() (all errs) {
	path := s.path.Child("evictionResponders")
	if len(s.spec.EvictionResponders) > 10 {
		all = append(all, field.TooMany(path, len(s.spec.EvictionResponders), 10))
	}
	if len(s.spec.EvictionResponders) > 0 && s.spec.SchedulingGroup != nil {
		all = append(all, field.Forbidden(path, "may not be set when `schedulingGroup` is set"))
	}
	names := seen{}
	for i, r := range s.spec.EvictionResponders {
		at := path.Index(i)
		all = append(all, names.unique(at, r.Name)...)
		all = append(all, responderName(at.Child("name"), r.Name)...)
		if r.Priority == nil {
			all = append(all, field.Required(at.Child("priority"), ""))
			continue
		}
		all = append(all, inRange(at.Child("priority"), *r.Priority, 0, 100000)...)
		if *r.Priority >= 0 && *r.Priority < 1000 {
			all = append(all, field.Invalid(at.Child("priority"), *r.Priority,
				"0-999 is reserved for responders with *.k8s.io suffix"))
		}
	}
	return all
}

func responderName(path *field.Path, name string) errs {
	if name == "" {
		return errs{field.Required(path, "")}
	}
	domain, _, ok := strings.Cut(name, "/")
	if !ok {
		return errs{field.Invalid(path, name, "must be a domain-prefixed key (such as \"acme.io/foo\")")}
	}
	if strings.HasSuffix("."+domain, ".k8s.io") || strings.HasSuffix("."+domain, ".kubernetes.io") {
		return errs{field.Invalid(path, name, "domain names *.k8s.io and *.kubernetes.io are reserved")}
	}
	return qualifiedName(path, name)
}
