// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestValidateContainers(t *testing.T) {
	const c0 = "spec.containers[0]"
	checkSpoiled(t, []spoiled{
		{"no name", func(p *corev1.Pod) { mainOf(p).Name = "" }, c0 + ".name", requiredErr, ""},
		{"name", func(p *corev1.Pod) { mainOf(p).Name = "a_b" }, c0 + ".name", invalidErr, "RFC 1123 label"},
		{"name too long", func(p *corev1.Pod) { mainOf(p).Name = strings.Repeat("a", 64) }, c0 + ".name", invalidErr, "must be no more than 63"},
		{"names alike", func(p *corev1.Pod) { p.Spec.Containers[1].Name = "main" }, "spec.containers[1].name", duplicateErr, `"main"`},
		{"name of an init", func(p *corev1.Pod) { p.Spec.Containers[1].Name = "setup" }, "spec.containers[1].name", duplicateErr, ""},
		{"no image", func(p *corev1.Pod) { mainOf(p).Image = "" }, c0 + ".image", requiredErr, "Required value"},
		{"image with space", func(p *corev1.Pod) { mainOf(p).Image = " a" }, c0 + ".image", invalidErr, "leading or trailing whitespace"},
		{"pull policy", func(p *corev1.Pod) { mainOf(p).ImagePullPolicy = "Maybe" }, c0 + ".imagePullPolicy", notSupportedErr, `"Always", "IfNotPresent", "Never"`},
		{"no pull policy", func(p *corev1.Pod) { mainOf(p).ImagePullPolicy = "" }, c0 + ".imagePullPolicy", requiredErr, ""},
		{"termination message policy", func(p *corev1.Pod) { mainOf(p).TerminationMessagePolicy = "x" }, c0 + ".terminationMessagePolicy", notSupportedErr, "FallbackToLogsOnError"},
		{"port zero", func(p *corev1.Pod) { mainOf(p).Ports[0].ContainerPort = 0 }, c0 + ".ports[0].containerPort", requiredErr, ""},
		{"port too high", func(p *corev1.Pod) { mainOf(p).Ports[0].ContainerPort = 65536 }, c0 + ".ports[0].containerPort", invalidErr, "must be between 1 and 65535"},
		{"host port negative", func(p *corev1.Pod) { mainOf(p).Ports[0].HostPort = -1 }, c0 + ".ports[0].hostPort", invalidErr, "must be between 1 and 65535"},
		{"port protocol", func(p *corev1.Pod) { mainOf(p).Ports[0].Protocol = "tcp" }, c0 + ".ports[0].protocol", notSupportedErr, `"SCTP", "TCP", "UDP"`},
		{"port name", func(p *corev1.Pod) { mainOf(p).Ports[0].Name = "1" }, c0 + ".ports[0].name", invalidErr, "at least one letter"},
		{"port name too long", func(p *corev1.Pod) { mainOf(p).Ports[0].Name = "a-name-much-too-long" }, c0 + ".ports[0].name", invalidErr, "must be no more than 15"},
		{"port names alike", func(p *corev1.Pod) {
			mainOf(p).Ports = append(mainOf(p).Ports, corev1.ContainerPort{Name: "http", ContainerPort: 1, Protocol: "TCP"})
		}, c0 + ".ports[1].name", duplicateErr, ""},
		{"port host address", func(p *corev1.Pod) { mainOf(p).Ports[0].HostIP = "here" }, c0 + ".ports[0].hostIP", invalidErr, "valid IP"},
		{"host ports alike", func(p *corev1.Pod) {
			p.Spec.Containers[1].Ports = []corev1.ContainerPort{{ContainerPort: 1, HostPort: 18080, Protocol: "TCP"}}
		}, "spec.containers[1].ports[0].hostPort", duplicateErr, "18080"},

		{"SC-01 restartPolicy of an init", func(p *corev1.Pod) {
			p.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicy("x"))
		}, "spec.initContainers[0].restartPolicy", notSupportedErr, `supported values: "Always"`},
		{"SC-01 rules of an init", func(p *corev1.Pod) {
			p.Spec.InitContainers[0].RestartPolicyRules = make([]corev1.ContainerRestartRule, 1)
		}, "spec.initContainers[0].restartPolicy", requiredErr, "must specify restartPolicy"},
		{"SC-01 restartPolicy of a main", func(p *corev1.Pod) { mainOf(p).RestartPolicy = new(corev1.ContainerRestartPolicy("x")) }, c0 + ".restartPolicy", notSupportedErr, ""},
		{"rules without policy", func(p *corev1.Pod) { mainOf(p).RestartPolicyRules = make([]corev1.ContainerRestartRule, 1) }, c0 + ".restartPolicy", requiredErr, "must specify restartPolicy"},
		{"too many rules", func(p *corev1.Pod) { mainOf(p).RestartPolicyRules = make([]corev1.ContainerRestartRule, 21) }, c0 + ".restartPolicyRules", tooManyErr, ""},
		{"rule action", restartRule(corev1.ContainerRestartRule{Action: "Stop"}), c0 + ".restartPolicyRules[0].action", notSupportedErr, "Restart"},
		{"rule without codes", restartRule(corev1.ContainerRestartRule{Action: "Restart"}), c0 + ".restartPolicyRules[0].exitCodes", requiredErr, ""},
		{"rule operator", restartRule(exitRule("Is", 1)), c0 + ".restartPolicyRules[0].exitCodes.operator", notSupportedErr, "NotIn"},
		{"rule values", restartRule(exitRule("In")), c0 + ".restartPolicyRules[0].exitCodes.values", requiredErr, ""},
		{"rule value", restartRule(exitRule("In", 256)), c0 + ".restartPolicyRules[0].exitCodes.values[0]", invalidErr, "between 0 and 255"},
		{"rule values alike", restartRule(exitRule("In", 1, 1)), c0 + ".restartPolicyRules[0].exitCodes.values[1]", duplicateErr, ""},
		{"SC-07 init with hook", func(p *corev1.Pod) { p.Spec.InitContainers[0].Lifecycle = &corev1.Lifecycle{} }, "spec.initContainers[0].lifecycle", forbiddenErr, "may not be set for init containers without restartPolicy=Always"},
		{"SC-07 init with liveness probe", func(p *corev1.Pod) { p.Spec.InitContainers[0].LivenessProbe = probe(nil) }, "spec.initContainers[0].livenessProbe", forbiddenErr, ""},
		{"SC-07 init with readiness probe", func(p *corev1.Pod) { p.Spec.InitContainers[0].ReadinessProbe = probe(nil) }, "spec.initContainers[0].readinessProbe", forbiddenErr, ""},
		{"SC-07 init with startup probe", func(p *corev1.Pod) { p.Spec.InitContainers[0].StartupProbe = probe(nil) }, "spec.initContainers[0].startupProbe", forbiddenErr, ""},
		{"sidecar's probe", func(p *corev1.Pod) {
			p.Spec.InitContainers[1].LivenessProbe = probe(func(p *corev1.Probe) { p.PeriodSeconds = -1 })
		}, "spec.initContainers[1].livenessProbe.periodSeconds", invalidErr, ""},

		{"env name", func(p *corev1.Pod) { mainOf(p).Env[0].Name = "a=b" }, c0 + ".env[0].name", invalidErr, "printable ASCII"},
		{"env no name", func(p *corev1.Pod) { mainOf(p).Env[0].Name = "" }, c0 + ".env[0].name", requiredErr, ""},
		{"env value and source", func(p *corev1.Pod) { mainOf(p).Env[1].Value = "x" }, c0 + ".env[1].valueFrom", invalidErr, "may not be specified when `value` is not empty"},
		{"env without source", envFrom(corev1.EnvVarSource{}), c0 + ".env[1].valueFrom", invalidErr, "must specify one of"},
		{"env with two sources", envFrom(corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}, Key: "b"},
			SecretKeyRef:    &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}, Key: "b"},
		}), c0 + ".env[1].valueFrom", invalidErr, "may not have more than one field specified"},
		{"env field", func(p *corev1.Pod) { mainOf(p).Env[1].ValueFrom.FieldRef.FieldPath = "spec.hostname" }, c0 + ".env[1].valueFrom.fieldRef.fieldPath", notSupportedErr, "metadata.name"},
		{"env no field", func(p *corev1.Pod) { mainOf(p).Env[1].ValueFrom.FieldRef.FieldPath = "" }, c0 + ".env[1].valueFrom.fieldRef.fieldPath", requiredErr, ""},
		{"env all labels", func(p *corev1.Pod) { mainOf(p).Env[1].ValueFrom.FieldRef.FieldPath = "metadata.labels" }, c0 + ".env[1].valueFrom.fieldRef.fieldPath", notSupportedErr, ""},
		{"env label key", func(p *corev1.Pod) { mainOf(p).Env[1].ValueFrom.FieldRef.FieldPath = "metadata.labels['a b']" }, c0 + ".env[1].valueFrom.fieldRef.fieldPath", invalidErr, ""},
		{"env subscript", func(p *corev1.Pod) { mainOf(p).Env[1].ValueFrom.FieldRef.FieldPath = "metadata.name['a']" }, c0 + ".env[1].valueFrom.fieldRef.fieldPath", invalidErr, "does not support subscript"},
		{"env field version", func(p *corev1.Pod) { mainOf(p).Env[1].ValueFrom.FieldRef.APIVersion = "v2" }, c0 + ".env[1].valueFrom.fieldRef.apiVersion", invalidErr, "v1"},
		{"env no field version", func(p *corev1.Pod) { mainOf(p).Env[1].ValueFrom.FieldRef.APIVersion = "" }, c0 + ".env[1].valueFrom.fieldRef.apiVersion", requiredErr, ""},
		{"env resource", envFrom(corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.gpu"}}), c0 + ".env[1].valueFrom.resourceFieldRef.resource", notSupportedErr, "limits.cpu"},
		{"env no resource", envFrom(corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{}}), c0 + ".env[1].valueFrom.resourceFieldRef.resource", requiredErr, ""},
		{"env divisor", envFrom(corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu", Divisor: quantity("1Mi")}}), c0 + ".env[1].valueFrom.resourceFieldRef.divisor", invalidErr, "only divisor's values 1, 1m are supported"},
		{"env configMap name", envFrom(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "a"}}), c0 + ".env[1].valueFrom.configMapKeyRef.name", requiredErr, ""},
		{"env configMap key", envFrom(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "a b"}}), c0 + ".env[1].valueFrom.configMapKeyRef.key", invalidErr, "valid config key"},
		{"env secret key", envFrom(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{}}), c0 + ".env[1].valueFrom.secretKeyRef.key", requiredErr, ""},
		{"env file volume", envFrom(corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "none", Path: "a", Key: "b"}}), c0 + ".env[1].valueFrom.fileKeyRef.volumeName", notFoundErr, ""},
		{"env file volume kind", envFrom(corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "conf", Path: "a", Key: "b"}}), c0 + ".env[1].valueFrom.fileKeyRef.volumeName", invalidErr, "emptyDir"},
		{"env file path", envFrom(corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "scratch", Path: "../a", Key: "b"}}), c0 + ".env[1].valueFrom.fileKeyRef.path", invalidErr, "must not contain '..'"},
		{"env file key", envFrom(corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "scratch", Path: "a", Key: strings.Repeat("k", 129)}}), c0 + ".env[1].valueFrom.fileKeyRef.key", tooLongErr, "128"},
		{"envFrom nothing", func(p *corev1.Pod) { mainOf(p).EnvFrom[0] = corev1.EnvFromSource{} }, c0 + ".envFrom", invalidErr, "must specify one of: `configMapRef` or `secretRef`"},
		{"envFrom both", func(p *corev1.Pod) { mainOf(p).EnvFrom[0].SecretRef = &corev1.SecretEnvSource{} }, c0 + ".envFrom", invalidErr, "more than one field"},
		{"env configMap name with a space", envFrom(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "a b"}, Key: "a"}}), c0 + ".env[1].valueFrom.configMapKeyRef.name", invalidErr, "RFC 1123"},
		{"envFrom configMap name in capitals", func(p *corev1.Pod) { mainOf(p).EnvFrom[0].ConfigMapRef.Name = "A" }, c0 + ".envFrom[0].configMapRef.name", invalidErr, "RFC 1123"},
		{"envFrom secret name", func(p *corev1.Pod) {
			mainOf(p).EnvFrom[0] = corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{}}
		}, c0 + ".envFrom[0].secretRef.name", requiredErr, ""},
		{"envFrom configMap name", func(p *corev1.Pod) { mainOf(p).EnvFrom[0].ConfigMapRef.Name = "" }, c0 + ".envFrom[0].configMapRef.name", requiredErr, ""},
		{"envFrom prefix", func(p *corev1.Pod) { mainOf(p).EnvFrom[0].Prefix = "a=" }, c0 + ".envFrom[0].prefix", invalidErr, ""},

		{"resource name", resources("disk", "1", ""), c0 + ".resources.limits[disk]", invalidErr, "must be a standard resource for containers"},
		{"resource name form", resources("a b/c", "1", ""), c0 + ".resources.limits[a b/c]", invalidErr, ""},
		{"resource negative", resources("cpu", "-1", ""), c0 + ".resources.limits[cpu]", invalidErr, "must be greater than or equal to 0"},
		{"request over limit", resources("memory", "1Mi", "2Mi"), c0 + ".resources.requests", invalidErr, "must be less than or equal to memory limit of 1Mi"},
		{"hugepages request differs", resources("hugepages-2Mi", "4Mi", "2Mi"), c0 + ".resources.requests", invalidErr, "must be equal to hugepages-2Mi limit"},
		{"hugepages alone", func(p *corev1.Pod) {
			l := corev1.ResourceList{"hugepages-2Mi": quantity("4Mi")}
			mainOf(p).Resources = corev1.ResourceRequirements{Limits: l, Requests: l}
		}, c0 + ".resources", forbiddenErr, "HugePages require cpu or memory"},
		{"hugepages torn", resources("hugepages-2Mi", "3Mi", "3Mi"), c0 + ".resources.limits[hugepages-2Mi]", invalidErr, "multiple"},
		{"hugepages size", resources("hugepages-big", "3Mi", "3Mi"), c0 + ".resources.limits[hugepages-big]", invalidErr, "hugepages-<size>"},
		{"device request without limit", func(p *corev1.Pod) { mainOf(p).Resources.Requests["example.com/gpu"] = quantity("1") }, c0 + ".resources.limits", requiredErr, "Limit must be set for non overcommitable resources"},
		{"half a device", resources("example.com/gpu", "500m", "500m"), c0 + ".resources.limits[example.com/gpu]", invalidErr, "must be an integer"},
		{"claim unknown", func(p *corev1.Pod) { mainOf(p).Resources.Claims = []corev1.ResourceClaim{{Name: "x"}} }, c0 + ".resources.claims[0].name", notFoundErr, ""},
		{"claim unnamed", func(p *corev1.Pod) { mainOf(p).Resources.Claims = []corev1.ResourceClaim{{}} }, c0 + ".resources.claims[0].name", requiredErr, ""},
		{"claims alike", func(p *corev1.Pod) { mainOf(p).Resources.Claims = []corev1.ResourceClaim{{Name: "x"}, {Name: "x"}} }, c0 + ".resources.claims[1]", duplicateErr, ""},
		{"resize name", resize("disk", "NotRequired"), c0 + ".resizePolicy", notSupportedErr, "cpu"},
		{"resize policy", resize("cpu", "Maybe"), c0 + ".resizePolicy", notSupportedErr, "RestartContainer"},
		{"resize restart in Never pod", func(p *corev1.Pod) {
			p.Spec.RestartPolicy = "Never"
			resize("cpu", "RestartContainer")(p)
		}, c0 + ".resizePolicy", invalidErr, "must be 'NotRequired'"},
		{"resize twice", func(p *corev1.Pod) {
			r := corev1.ContainerResizePolicy{ResourceName: "cpu", RestartPolicy: "NotRequired"}
			mainOf(p).ResizePolicy = []corev1.ContainerResizePolicy{r, r}
		}, c0 + ".resizePolicy[1]", duplicateErr, ""},
	})
}

func restartRule(r corev1.ContainerRestartRule) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		mainOf(p).RestartPolicy = new(corev1.ContainerRestartPolicyNever)
		mainOf(p).RestartPolicyRules = []corev1.ContainerRestartRule{r}
	}
}

func exitRule(op corev1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) corev1.ContainerRestartRule {
	return corev1.ContainerRestartRule{Action: "Restart", ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: op, Values: codes}}
}

func envFrom(source corev1.EnvVarSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) { mainOf(p).Env[1].ValueFrom = &source }
}

func resources(name corev1.ResourceName, limit, request string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		mainOf(p).Resources.Limits[name] = quantity(limit)
		if request != "" {
			mainOf(p).Resources.Requests[name] = quantity(request)
		}
	}
}

func resize(name corev1.ResourceName, policy corev1.ResourceResizeRestartPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		mainOf(p).ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: name, RestartPolicy: policy}}
	}
}

func TestValidateProbesAndHooks(t *testing.T) {
	const live, hook = "spec.containers[0].livenessProbe", "spec.containers[0].lifecycle.preStop"
	liveness := func(change func(*corev1.Probe)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { mainOf(p).LivenessProbe = probe(change) }
	}
	preStop := func(h corev1.LifecycleHandler) func(*corev1.Pod) {
		return func(p *corev1.Pod) { mainOf(p).Lifecycle = &corev1.Lifecycle{PreStop: &h} }
	}
	checkSpoiled(t, []spoiled{
		{"no handler", liveness(func(p *corev1.Probe) { p.HTTPGet = nil }), live, requiredErr, "must specify a handler type"},
		{"two handlers", liveness(func(p *corev1.Probe) { p.GRPC = &corev1.GRPCAction{Port: 1} }), live + ".grpc", forbiddenErr, "may not specify more than 1 handler type"},
		{"initialDelaySeconds", liveness(func(p *corev1.Probe) { p.InitialDelaySeconds = -1 }), live + ".initialDelaySeconds", invalidErr, "greater than or equal to 0"},
		{"timeoutSeconds", liveness(func(p *corev1.Probe) { p.TimeoutSeconds = -1 }), live + ".timeoutSeconds", invalidErr, ""},
		{"periodSeconds", liveness(func(p *corev1.Probe) { p.PeriodSeconds = -1 }), live + ".periodSeconds", invalidErr, ""},
		{"failureThreshold", liveness(func(p *corev1.Probe) { p.FailureThreshold = -1 }), live + ".failureThreshold", invalidErr, ""},
		{"liveness successThreshold", liveness(func(p *corev1.Probe) { p.SuccessThreshold = 2 }), live + ".successThreshold", invalidErr, "must be 1"},
		{"startup successThreshold", func(p *corev1.Pod) {
			mainOf(p).StartupProbe = probe(func(p *corev1.Probe) { p.SuccessThreshold = 2 })
		}, "spec.containers[0].startupProbe.successThreshold", invalidErr, "must be 1"},
		{"grace", liveness(func(p *corev1.Probe) { p.TerminationGracePeriodSeconds = new(int64(0)) }), live + ".terminationGracePeriodSeconds", invalidErr, "must be greater than 0"},
		{"readiness grace", func(p *corev1.Pod) {
			mainOf(p).ReadinessProbe = probe(func(p *corev1.Probe) { p.TerminationGracePeriodSeconds = new(int64(1)) })
		}, "spec.containers[0].readinessProbe.terminationGracePeriodSeconds", invalidErr, "must not be set for readinessProbes"},
		{"exec", liveness(func(p *corev1.Probe) { p.ProbeHandler = corev1.ProbeHandler{Exec: &corev1.ExecAction{}} }), live + ".exec.command", requiredErr, ""},
		{"http port", liveness(func(p *corev1.Probe) { p.HTTPGet.Port = intstr.FromInt32(0) }), live + ".httpGet.port", invalidErr, "1 and 65535"},
		{"http port name", liveness(func(p *corev1.Probe) { p.HTTPGet.Port = intstr.FromString("A") }), live + ".httpGet.port", invalidErr, ""},
		{"http path", liveness(func(p *corev1.Probe) { p.HTTPGet.Path = "" }), live + ".httpGet.path", requiredErr, ""},
		{"http scheme", liveness(func(p *corev1.Probe) { p.HTTPGet.Scheme = "ftp" }), live + ".httpGet.scheme", notSupportedErr, `"HTTP", "HTTPS"`},
		{"http header", liveness(func(p *corev1.Probe) { p.HTTPGet.HTTPHeaders = []corev1.HTTPHeader{{Name: "a b"}} }), live + ".httpGet.httpHeaders[0].name", invalidErr, "HTTP header"},
		{"http/2 over TLS", liveness(func(p *corev1.Probe) {
			p.HTTPGet.Protocol, p.HTTPGet.Scheme = new(corev1.HTTPProtocolHTTP2), corev1.URISchemeHTTPS
		}), live + ".httpGet.protocol", invalidErr, "scheme HTTP"},
		{"http/2 of another host", liveness(func(p *corev1.Probe) {
			p.HTTPGet.Protocol, p.HTTPGet.Scheme, p.HTTPGet.Host = new(corev1.HTTPProtocolHTTP2), corev1.URISchemeHTTP, "h"
		}), live + ".httpGet.host", invalidErr, "must be empty"},
		{"http protocol", liveness(func(p *corev1.Probe) { p.HTTPGet.Protocol = new(corev1.HTTPProtocol("h3")) }), live + ".httpGet.protocol", notSupportedErr, "HTTP2"},
		{"tcp port", liveness(func(p *corev1.Probe) { p.ProbeHandler = corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}} }), live + ".tcpSocket.port", invalidErr, ""},
		{"grpc port", liveness(func(p *corev1.Probe) { p.ProbeHandler = corev1.ProbeHandler{GRPC: &corev1.GRPCAction{}} }), live + ".grpc.port", invalidErr, ""},
		{"grpc mode", liveness(func(p *corev1.Probe) {
			p.ProbeHandler = corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1, Mode: new(corev1.GRPCProbeMode("x"))}}
		}), live + ".grpc.mode", notSupportedErr, "TLS"},
		{"hook without handler", preStop(corev1.LifecycleHandler{}), hook, requiredErr, "must specify a handler type"},
		{"hook with two", preStop(corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"a"}}, Sleep: &corev1.SleepAction{}}), hook + ".sleep", forbiddenErr, ""},
		{"hook sleep too long", preStop(corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 31}}), hook + ".sleep.seconds", invalidErr, "terminationGracePeriodSeconds (30)"},
		{"hook sleep negative", preStop(corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: -1}}), hook + ".sleep.seconds", invalidErr, ""},
		{"postStart", func(p *corev1.Pod) { mainOf(p).Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{}} }, "spec.containers[0].lifecycle.postStart", requiredErr, ""},
		{"stop signal without os", func(p *corev1.Pod) { mainOf(p).Lifecycle = &corev1.Lifecycle{StopSignal: new(corev1.SIGTERM)} }, "spec.containers[0].lifecycle.stopSignal", forbiddenErr, "spec.os.name"},
		{"stop signal", func(p *corev1.Pod) {
			p.Spec.OS = &corev1.PodOS{Name: "linux"}
			mainOf(p).Lifecycle = &corev1.Lifecycle{StopSignal: new(corev1.Signal("TERM"))}
		}, "spec.containers[0].lifecycle.stopSignal", notSupportedErr, "SIGTERM"},
	})
}

// ATTACK A21.
func TestValidateSecurity(t *testing.T) {
	const pod, main = "spec.securityContext", "spec.containers[0].securityContext"
	podSC := func(change func(*corev1.PodSecurityContext)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { change(p.Spec.SecurityContext) }
	}
	mainSC := func(change func(*corev1.SecurityContext)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { change(mainOf(p).SecurityContext) }
	}
	sysctl := func(name string) func(*corev1.PodSecurityContext) {
		return func(sc *corev1.PodSecurityContext) { sc.Sysctls = append(sc.Sysctls, corev1.Sysctl{Name: name}) }
	}
	checkSpoiled(t, []spoiled{
		{"pod user", podSC(func(sc *corev1.PodSecurityContext) { sc.RunAsUser = new(int64(-1)) }), pod + ".runAsUser", invalidErr, "must be between 0 and 2147483647"},
		{"pod group", podSC(func(sc *corev1.PodSecurityContext) { sc.RunAsGroup = new(int64(1 << 31)) }), pod + ".runAsGroup", invalidErr, ""},
		{"fsGroup", podSC(func(sc *corev1.PodSecurityContext) { sc.FSGroup = new(int64(-1)) }), pod + ".fsGroup", invalidErr, ""},
		{"supplementalGroups", podSC(func(sc *corev1.PodSecurityContext) { sc.SupplementalGroups = []int64{1, -1} }), pod + ".supplementalGroups[1]", invalidErr, ""},
		{"supplementalGroupsPolicy", podSC(func(sc *corev1.PodSecurityContext) {
			sc.SupplementalGroupsPolicy = new(corev1.SupplementalGroupsPolicy("x"))
		}), pod + ".supplementalGroupsPolicy", notSupportedErr, "Strict"},
		{"fsGroupChangePolicy", podSC(func(sc *corev1.PodSecurityContext) {
			sc.FSGroupChangePolicy = new(corev1.PodFSGroupChangePolicy("x"))
		}), pod + ".fsGroupChangePolicy", notSupportedErr, "OnRootMismatch"},
		{"seLinuxChangePolicy", podSC(func(sc *corev1.PodSecurityContext) {
			sc.SELinuxChangePolicy = new(corev1.PodSELinuxChangePolicy("x"))
		}), pod + ".seLinuxChangePolicy", notSupportedErr, "Recursive"},
		{"sysctl name", podSC(sysctl("A B")), pod + ".sysctls[0].name", invalidErr, "match regex"},
		{"sysctl no name", podSC(sysctl("")), pod + ".sysctls[0].name", requiredErr, ""},
		{"sysctl twice", podSC(func(sc *corev1.PodSecurityContext) {
			sysctl("net.core.somaxconn")(sc)
			sysctl("net/core/somaxconn")(sc)
		}), pod + ".sysctls[1].name", duplicateErr, ""},
		{"sysctl of the host's network", func(p *corev1.Pod) {
			p.Spec.HostNetwork = true
			sysctl("net.core.somaxconn")(p.Spec.SecurityContext)
		}, pod + ".sysctls[0].name", invalidErr, "may not be specified when 'hostNetwork' is true"},
		{"sysctl of the host's IPC", func(p *corev1.Pod) {
			p.Spec.HostIPC = true
			sysctl("kernel.shmmax")(p.Spec.SecurityContext)
		}, pod + ".sysctls[0].name", invalidErr, "hostIPC"},
		{"seccomp type", podSC(func(sc *corev1.PodSecurityContext) { sc.SeccompProfile = &corev1.SeccompProfile{Type: "x"} }), pod + ".seccompProfile.type", notSupportedErr, "RuntimeDefault"},
		{"seccomp no file", podSC(func(sc *corev1.PodSecurityContext) { sc.SeccompProfile = &corev1.SeccompProfile{Type: "Localhost"} }), pod + ".seccompProfile.localhostProfile", requiredErr, "must be set when seccomp type is Localhost"},
		{"seccomp file too much", podSC(func(sc *corev1.PodSecurityContext) {
			sc.SeccompProfile = &corev1.SeccompProfile{Type: "Unconfined", LocalhostProfile: new("a")}
		}), pod + ".seccompProfile.localhostProfile", invalidErr, "can only be set when seccomp type is Localhost"},
		{"seccomp file outside", mainSC(func(sc *corev1.SecurityContext) {
			sc.SeccompProfile = &corev1.SeccompProfile{Type: "Localhost", LocalhostProfile: new("../a")}
		}), main + ".seccompProfile.localhostProfile", invalidErr, "must not contain '..'"},
		{"AppArmor type", podSC(func(sc *corev1.PodSecurityContext) { sc.AppArmorProfile = &corev1.AppArmorProfile{} }), pod + ".appArmorProfile.type", requiredErr, ""},
		{"AppArmor no profile", mainSC(func(sc *corev1.SecurityContext) { sc.AppArmorProfile = &corev1.AppArmorProfile{Type: "Localhost"} }), main + ".appArmorProfile.localhostProfile", requiredErr, ""},
		{"AppArmor profile too much", mainSC(func(sc *corev1.SecurityContext) {
			sc.AppArmorProfile = &corev1.AppArmorProfile{Type: "RuntimeDefault", LocalhostProfile: new("a")}
		}), main + ".appArmorProfile.localhostProfile", invalidErr, ""},
		{"AppArmor padded", mainSC(func(sc *corev1.SecurityContext) {
			sc.AppArmorProfile = &corev1.AppArmorProfile{Type: "Localhost", LocalhostProfile: new(" a")}
		}), main + ".appArmorProfile.localhostProfile", invalidErr, "padded"},
		{"user", mainSC(func(sc *corev1.SecurityContext) { sc.RunAsUser = new(int64(-2)) }), main + ".runAsUser", invalidErr, ""},
		{"group", mainSC(func(sc *corev1.SecurityContext) { sc.RunAsGroup = new(int64(-2)) }), main + ".runAsGroup", invalidErr, ""},
		{"procMount", mainSC(func(sc *corev1.SecurityContext) { sc.ProcMount = new(corev1.ProcMountType("x")) }), main + ".procMount", notSupportedErr, "Unmasked"},
		{"procMount of the host's users", mainSC(func(sc *corev1.SecurityContext) { sc.ProcMount = new(corev1.UnmaskedProcMount) }), main + ".procMount", invalidErr, "`hostUsers` must be false"},
		{"no escalation but privileged", mainSC(func(sc *corev1.SecurityContext) { sc.AllowPrivilegeEscalation, sc.Privileged = new(false), new(true) }), main, invalidErr, "`privileged` to true"},
		{"no escalation but admin", mainSC(func(sc *corev1.SecurityContext) {
			sc.AllowPrivilegeEscalation, sc.Capabilities = new(false), &corev1.Capabilities{Add: []corev1.Capability{"CAP_SYS_ADMIN"}}
		}), main, invalidErr, "CAP_SYS_ADMIN"},
		{"capability without name", mainSC(func(sc *corev1.SecurityContext) {
			sc.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{""}}
		}), main + ".capabilities.drop[0]", requiredErr, ""},
		{"windows credential name", podSC(func(sc *corev1.PodSecurityContext) {
			sc.WindowsOptions = &corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new("A")}
		}), pod + ".windowsOptions.gmsaCredentialSpecName", invalidErr, ""},
		{"windows credential", podSC(func(sc *corev1.PodSecurityContext) {
			sc.WindowsOptions = &corev1.WindowsSecurityContextOptions{GMSACredentialSpec: new("")}
		}), pod + ".windowsOptions.gmsaCredentialSpec", invalidErr, "cannot be an empty string"},
		{"windows user", mainSC(func(sc *corev1.SecurityContext) {
			sc.WindowsOptions = &corev1.WindowsSecurityContextOptions{RunAsUserName: new("a\x01")}
		}), main + ".windowsOptions.runAsUserName", invalidErr, "control characters"},
		{"windows domain", mainSC(func(sc *corev1.SecurityContext) {
			sc.WindowsOptions = &corev1.WindowsSecurityContextOptions{RunAsUserName: new(`\me`)}
		}), main + ".windowsOptions.runAsUserName", invalidErr, "Domain"},
	})
}
