// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// allContainers: each by itself and its kind, then what must hold between them.
func (s *scope) allContainers() (all errs) {
	if len(s.spec.Containers) == 0 {
		all = append(all, field.Required(s.path.Child("containers"), ""))
	}
	names := seen{}
	for ref := range containersBelow(s.spec, s.path) {
		all = append(all, s.container(ref)...)
		switch ref.Kind {
		case Init, Sidecar:
			all = append(all, s.initContainer(ref)...)
		case Ephemeral:
			all = append(all, s.ephemeralContainer(ref)...)
		case Main:
			all = append(all, s.mainContainer(ref)...)
		}
		if ref.Container.Name != "" { // EC-06: unique over all kinds
			all = append(all, names.unique(ref.Path().Child("name"), ref.Container.Name)...)
		}
	}
	return append(all, s.hostPorts()...)
}

// container holds the rules that all kinds share.
func (s *scope) container(ref ContainerRef) errs {
	c, path := ref.Container, ref.Path()
	all := dnsLabel(path.Child("name"), c.Name)
	all = append(all, imageName(path.Child("image"), c.Image)...)
	all = append(all, oneOf(path.Child("imagePullPolicy"), c.ImagePullPolicy, corev1.PullAlways,
		corev1.PullIfNotPresent, corev1.PullNever)...)
	all = append(all, oneOf(path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	all = append(all, containerPorts(c.Ports, path.Child("ports"))...)
	all = append(all, validateEnv(c.Env, s, c, path.Child("env"))...)
	all = append(all, validateEnvFrom(c.EnvFrom, path.Child("envFrom"))...)
	all = append(all, s.mounts(ref)...)
	all = append(all, s.containerResources(&c.Resources, path.Child("resources"))...)
	all = append(all, s.resizePolicy(c.ResizePolicy, path.Child("resizePolicy"))...)
	all = append(all, s.containerSecurity(c.SecurityContext, path.Child("securityContext"))...)
	return all
}

// imageName: there must be one; what it looks like is the runtime's to judge (InvalidImageName).
func imageName(path *field.Path, image string) errs {
	if image == "" {
		return errs{field.Required(path, "")}
	}
	if strings.TrimSpace(image) != image {
		return errs{field.Invalid(path, image, "must not have leading or trailing whitespace")}
	}
	return nil
}

func containerPorts(ports []corev1.ContainerPort, path *field.Path) (all errs) {
	names := seen{}
	for i, p := range ports {
		at := path.Index(i)
		if p.Name != "" {
			complaints := validation.IsValidPortName(p.Name)
			all = append(all, valid(at.Child("name"), p.Name, complaints)...)
			if len(complaints) == 0 {
				all = append(all, names.unique(at.Child("name"), p.Name)...)
			}
		}
		if p.ContainerPort == 0 {
			all = append(all, field.Required(at.Child("containerPort"), ""))
		} else {
			all = append(all, valid(at.Child("containerPort"), p.ContainerPort,
				validation.IsValidPortNum(int(p.ContainerPort)))...)
		}
		if p.HostPort != 0 {
			all = append(all, valid(at.Child("hostPort"), p.HostPort, validation.IsValidPortNum(int(p.HostPort)))...)
		}
		all = append(all, oneOf(at.Child("protocol"), p.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP,
			corev1.ProtocolUDP)...)
		if p.HostIP != "" {
			all = append(all, ipAddress(at.Child("hostIP"), p.HostIP)...)
		}
	}
	return all
}

// hostPorts: two mains cannot have the same port of the machine. Inits run one by one and may.
func (s *scope) hostPorts() (all errs) {
	taken := seen{}
	for i := range s.spec.Containers {
		for j, p := range s.spec.Containers[i].Ports {
			if p.HostPort == 0 {
				continue
			}
			key := fmt.Sprintf("%s/%s/%d", p.Protocol, p.HostIP, p.HostPort)
			at := s.path.Child("containers").Index(i).Child("ports").Index(j).Child("hostPort")
			all = append(all, taken.unique(at, key)...)
		}
	}
	return all
}

func (s *scope) mainContainer(ref ContainerRef) errs {
	c, path := ref.Container, ref.Path()
	all := s.probes(c, path)
	all = append(all, s.lifecycle(c.Lifecycle, path.Child("lifecycle"))...)
	all = append(all, restartRules(c, path)...)
	return all
}

// restartRules: a container's own restartPolicy and the rules beside it (KEP-5307).
func restartRules(c *corev1.Container, path *field.Path) errs {
	all := oneOfIfSet(path.Child("restartPolicy"), c.RestartPolicy, corev1.ContainerRestartPolicyAlways,
		corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyNever)
	at := path.Child("restartPolicyRules")
	if len(c.RestartPolicyRules) > 0 && c.RestartPolicy == nil {
		all = append(all, field.Required(path.Child("restartPolicy"),
			"must specify restartPolicy when restart rules are used"))
	}
	if len(c.RestartPolicyRules) > 20 {
		all = append(all, field.TooMany(at, len(c.RestartPolicyRules), 20))
	}
	for i, rule := range c.RestartPolicyRules {
		all = append(all, oneOf(at.Index(i).Child("action"), rule.Action,
			corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers)...)
		codes, codesAt := rule.ExitCodes, at.Index(i).Child("exitCodes")
		if codes == nil {
			all = append(all, field.Required(codesAt, "must be specified"))
			continue
		}
		all = append(all, oneOf(codesAt.Child("operator"), codes.Operator,
			corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn)...)
		all = append(all, exitCodes(codes.Values, codesAt.Child("values"))...)
	}
	return all
}

func exitCodes(codes []int32, path *field.Path) (all errs) {
	if len(codes) == 0 {
		all = append(all, field.Required(path, "at least one value is needed"))
	}
	if len(codes) > 255 {
		all = append(all, field.TooMany(path, len(codes), 255))
	}
	known := map[int32]bool{}
	for i, code := range codes {
		all = append(all, inRange(path.Index(i), code, 0, 255)...)
		if known[code] {
			all = append(all, field.Duplicate(path.Index(i), code))
		}
		known[code] = true
	}
	return all
}

// initContainer: inits have neither probes nor hooks; sidecars have both (SC-01, SC-07).
func (s *scope) initContainer(ref ContainerRef) (all errs) {
	c, path := ref.Container, ref.Path()
	if c.RestartPolicy == nil && len(c.RestartPolicyRules) > 0 { // what they say is nobody's then
		all = append(all, field.Required(path.Child("restartPolicy"),
			"must specify restartPolicy when restart rules are used"))
	} else {
		all = append(all, restartRules(c, path)...)
	}
	if ref.Kind == Sidecar {
		all = append(all, s.probes(c, path)...)
		return append(all, s.lifecycle(c.Lifecycle, path.Child("lifecycle"))...)
	}
	for i, p := range c.ResizePolicy { // it runs once: there is nothing to start again
		if p.RestartPolicy == corev1.RestartContainer {
			all = append(all, field.Invalid(path.Child("resizePolicy").Index(i).Child("restartPolicy"), p.RestartPolicy,
				"must not be set to 'RestartContainer' for non-sidecar initContainers"))
		}
	}
	const words = "may not be set for init containers without restartPolicy=Always"
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"lifecycle", c.Lifecycle != nil},
		{"livenessProbe", c.LivenessProbe != nil},
		{"readinessProbe", c.ReadinessProbe != nil},
		{"startupProbe", c.StartupProbe != nil},
	} {
		if f.set {
			all = append(all, field.Forbidden(path.Child(f.name), words))
		}
	}
	return all
}

// ephemeralContainer: what makes no sense for a debugger (EC-05), and whom it looks at (EC-07).
func (s *scope) ephemeralContainer(ref ContainerRef) (all errs) {
	c, path := ref.Container, ref.Path()
	const words = "cannot be set for an Ephemeral Container"
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"ports", len(c.Ports) > 0},
		{"livenessProbe", c.LivenessProbe != nil},
		{"readinessProbe", c.ReadinessProbe != nil},
		{"startupProbe", c.StartupProbe != nil},
		{"lifecycle", c.Lifecycle != nil},
		{"resources", len(c.Resources.Limits)+len(c.Resources.Requests)+len(c.Resources.Claims) > 0},
		{"restartPolicy", c.RestartPolicy != nil},
		{"restartPolicyRules", len(c.RestartPolicyRules) > 0},
		{"resizePolicy", len(c.ResizePolicy) > 0},
	} {
		if f.set {
			all = append(all, field.Forbidden(path.Child(f.name), words))
		}
	}
	for i, m := range c.VolumeMounts {
		at := path.Child("volumeMounts").Index(i)
		if m.SubPath != "" {
			all = append(all, field.Forbidden(at.Child("subPath"), words))
		}
		if m.SubPathExpr != "" {
			all = append(all, field.Forbidden(at.Child("subPathExpr"), words))
		}
	}
	if ref.Target == "" {
		return all
	}
	if target, ok := FindContainer(s.spec, ref.Target); !ok || target.Kind == Ephemeral {
		all = append(all, field.NotFound(path.Child("targetContainerName"), ref.Target))
	}
	return all
}
