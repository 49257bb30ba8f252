// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// changed is one row of an update table: what is done to both (or nil), then to the new one, and what must be
// said; an empty path means that nothing may be.
type changed struct {
	name   string
	before func(*corev1.Pod)
	do     func(*corev1.Pod)
	path   string
	kind   field.ErrorType
	word   string
}

func checkChanged(t *testing.T, validate func(n, o *corev1.Pod) field.ErrorList, rows []changed) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			before := goodPod()
			if row.before != nil {
				row.before(before)
			}
			after := before.DeepCopy()
			row.do(after)
			got := validate(after, before)
			if row.path != "" {
				wantError(t, got, row.path, row.kind, row.word)
				return
			}
			for _, e := range got {
				t.Error(e)
			}
		})
	}
}

const mayNot = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

func TestValidateUpdate(t *testing.T) {
	deadline := func(n int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = &n }
	}
	tolerate := func(list ...corev1.Toleration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Tolerations = list }
	}
	gated := func(p *corev1.Pod) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}, {Name: "b"}}
		p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	}
	terms := func(p *corev1.Pod, exprs ...corev1.NodeSelectorRequirement) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: exprs}}},
		}}
	}
	zone := corev1.NodeSelectorRequirement{Key: "zone", Operator: "Exists"}
	rack := corev1.NodeSelectorRequirement{Key: "rack", Operator: "Exists"}
	one := corev1.Toleration{Key: "a", Operator: "Exists", Effect: "NoExecute"}
	two := corev1.Toleration{Key: "b", Operator: "Exists"}
	checkChanged(t, ValidateUpdate, []changed{
		{"nothing", nil, func(*corev1.Pod) {}, "", "", ""},
		{"labels", nil, func(p *corev1.Pod) { p.Labels["x"] = "y" }, "", "", ""},
		{"bad label", nil, func(p *corev1.Pod) { p.Labels["a b"] = "y" }, "metadata.labels", invalidErr, ""},
		{"name", nil, func(p *corev1.Pod) { p.Name = "other" }, "metadata.name", invalidErr, "field is immutable"},
		{"uid", nil, func(p *corev1.Pod) { p.UID = "other" }, "metadata.uid", invalidErr, "field is immutable"},
		{"no resourceVersion", nil, func(p *corev1.Pod) { p.ResourceVersion = "" }, "metadata.resourceVersion", invalidErr, "must be specified for an update"},
		{"finalizer of a deleted pod", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, func(p *corev1.Pod) { p.Finalizers = []string{"a/b"} }, "metadata.finalizers", forbiddenErr, ""},
		{"mirror annotation", nil, func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}, "metadata.annotations[kubernetes.io/config.mirror]", forbiddenErr, "may not be changed"},
		{"AppArmor annotation removed", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}
		}, func(p *corev1.Pod) { p.Annotations = nil }, "metadata.annotations[container.apparmor.security.beta.kubernetes.io/main]", forbiddenErr, "may not be changed"},
		{"image", nil, func(p *corev1.Pod) { mainOf(p).Image = "other:2" }, "", "", ""},
		{"init image", nil, func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "other:2" }, "", "", ""},
		{"no image", nil, func(p *corev1.Pod) { mainOf(p).Image = "" }, "spec.containers[0].image", requiredErr, ""},
		{"command", nil, func(p *corev1.Pod) { mainOf(p).Command = []string{"x"} }, "spec", forbiddenErr, mayNot},
		{"command is named", nil, func(p *corev1.Pod) { mainOf(p).Command = []string{"x"} }, "spec", forbiddenErr, "changed: spec.containers[0].command[0]"},
		{"host network", nil, func(p *corev1.Pod) { p.Spec.HostPID = true }, "spec", forbiddenErr, "changed: spec.hostPID"},
		{"resources", nil, func(p *corev1.Pod) { mainOf(p).Resources.Limits["cpu"] = quantity("2") }, "spec", forbiddenErr, mayNot},
		{"node", nil, func(p *corev1.Pod) { p.Spec.NodeName = "n" }, "spec", forbiddenErr, "spec.nodeName"},
		{"one container more", nil, func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{}) }, "spec.containers", forbiddenErr, "pod updates may not add or remove containers"},
		{"one init less", nil, func(p *corev1.Pod) { p.Spec.InitContainers = nil }, "spec.initContainers", forbiddenErr, "may not add or remove"},
		{"EC-03 ephemeral container", nil, func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugger("d")}
		}, "spec.ephemeralContainers", forbiddenErr, "pods/ephemeralcontainers"},
		{"EC-03 ephemeral container removed", func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugger("d")}
		}, func(p *corev1.Pod) { p.Spec.EphemeralContainers = nil }, "spec.ephemeralContainers", forbiddenErr, ""},
		{"EC-03 ephemeral container kept", func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugger("d")}
		}, func(p *corev1.Pod) { p.Labels["a"] = "b" }, "", "", ""},
		{"deadline set", nil, deadline(5), "", "", ""},
		{"deadline lowered", deadline(5), deadline(4), "", "", ""},
		{"deadline raised", deadline(5), deadline(6), "spec.activeDeadlineSeconds", invalidErr, "must be less than or equal to previous value"},
		{"deadline dropped", deadline(5), func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = nil }, "spec.activeDeadlineSeconds", invalidErr, "must not update from a positive integer to nil value"},
		{"deadline zero", nil, deadline(0), "spec.activeDeadlineSeconds", invalidErr, "between 1"},
		{"toleration added", tolerate(one), tolerate(one, two), "", "", ""},
		{"toleration removed", tolerate(one, two), tolerate(two), "spec.tolerations", forbiddenErr, "existing toleration can not be modified except its tolerationSeconds"},
		{"toleration seconds", tolerate(one), tolerate(corev1.Toleration{Key: "a", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: new(int64(1))}), "", "", ""},
		{"bad toleration added", nil, tolerate(corev1.Toleration{Key: "a", Operator: "x"}), "spec.tolerations[0].operator", notSupportedErr, ""},
		{"grace", nil, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(1)) }, "spec", forbiddenErr, "terminationGracePeriodSeconds"},
		{"grace of before repaired", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(-5)) }, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(1)) }, "", "", ""},
		{"a fault of before is not held against it", func(p *corev1.Pod) { p.Spec.Hostname = "BAD" }, func(p *corev1.Pod) { p.Labels["x"] = "y" }, "", "", ""},

		{"gate removed", gated, func(p *corev1.Pod) { p.Spec.SchedulingGates = p.Spec.SchedulingGates[1:] }, "", "", ""},
		{"gate added", nil, gated, "spec.schedulingGates[0].name", forbiddenErr, "only deletion is allowed, but found new scheduling gate 'a'"},
		{"gated: selector added", gated, func(p *corev1.Pod) { p.Spec.NodeSelector["zone"] = "a" }, "", "", ""},
		{"gated: selector changed", gated, func(p *corev1.Pod) { p.Spec.NodeSelector["disk"] = "hdd" }, "spec.nodeSelector", invalidErr, "only additions"},
		{"gated: bad selector", gated, func(p *corev1.Pod) { p.Spec.NodeSelector["a b"] = "" }, "spec.nodeSelector", invalidErr, ""},
		{"not gated: selector added", nil, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b"} }, "spec", forbiddenErr, mayNot},
		{"gated: affinity set", gated, func(p *corev1.Pod) { terms(p, zone) }, "", "", ""},
		{"gated: affinity narrowed", func(p *corev1.Pod) { gated(p); terms(p, zone) }, func(p *corev1.Pod) { terms(p, zone, rack) }, "", "", ""},
		{"gated: affinity widened", func(p *corev1.Pod) { gated(p); terms(p, zone, rack) }, func(p *corev1.Pod) { terms(p, zone) },
			"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]", invalidErr, "only additions"},
		{"gated: affinity dropped", func(p *corev1.Pod) { gated(p); terms(p, zone) }, func(p *corev1.Pod) { p.Spec.Affinity = nil },
			"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms", invalidErr, "no additions/deletions"},
		{"gated: pod affinity", gated, func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}} }, "spec", forbiddenErr, mayNot},
		{"not gated: affinity", nil, func(p *corev1.Pod) { terms(p, zone) }, "spec", forbiddenErr, mayNot},
	})
}

func TestValidateEphemeralContainersUpdate(t *testing.T) {
	add := func(change func(*corev1.EphemeralContainer)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			e := debugger("new")
			if change != nil {
				change(&e)
			}
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, e)
		}
	}
	had := func(p *corev1.Pod) { p.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugger("old")} }
	const e0 = "spec.ephemeralContainers[0]"
	const cannot = "cannot be set for an Ephemeral Container"
	checkChanged(t, ValidateEphemeralContainersUpdate, []changed{
		{"EC-04 added", had, add(nil), "", "", ""},
		{"EC-04 added in front", had, func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugger("new"), debugger("old")}
		}, "", "", ""},
		{"EC-04 removed", had, func(p *corev1.Pod) { p.Spec.EphemeralContainers = nil }, "spec.ephemeralContainers", forbiddenErr, `existing ephemeral containers "old" may not be removed`},
		{"EC-04 changed", had, func(p *corev1.Pod) { p.Spec.EphemeralContainers[0].Image = "x" }, "spec.ephemeralContainers", forbiddenErr, `existing ephemeral containers "old" may not be changed`},
		{"EC-04 the rest of the spec", had, func(p *corev1.Pod) { mainOf(p).Image = "x" }, "spec", forbiddenErr, "spec.containers[0].image"},
		{"EC-04 labels", had, func(p *corev1.Pod) { p.Labels["a"] = "b" }, "metadata.labels", forbiddenErr, "pods/ephemeralcontainers"},
		{"EC-05 ports", nil, add(func(e *corev1.EphemeralContainer) { e.Ports = []corev1.ContainerPort{{}} }), e0 + ".ports", forbiddenErr, cannot},
		{"EC-05 livenessProbe", nil, add(func(e *corev1.EphemeralContainer) { e.LivenessProbe = probe(nil) }), e0 + ".livenessProbe", forbiddenErr, cannot},
		{"EC-05 readinessProbe", nil, add(func(e *corev1.EphemeralContainer) { e.ReadinessProbe = probe(nil) }), e0 + ".readinessProbe", forbiddenErr, cannot},
		{"EC-05 startupProbe", nil, add(func(e *corev1.EphemeralContainer) { e.StartupProbe = probe(nil) }), e0 + ".startupProbe", forbiddenErr, cannot},
		{"EC-05 lifecycle", nil, add(func(e *corev1.EphemeralContainer) { e.Lifecycle = &corev1.Lifecycle{} }), e0 + ".lifecycle", forbiddenErr, cannot},
		{"EC-05 resources", nil, add(func(e *corev1.EphemeralContainer) {
			e.Resources.Limits = corev1.ResourceList{"cpu": quantity("1")}
		}), e0 + ".resources", forbiddenErr, cannot},
		{"EC-05 restartPolicy", nil, add(func(e *corev1.EphemeralContainer) { e.RestartPolicy = new(corev1.ContainerRestartPolicyAlways) }), e0 + ".restartPolicy", forbiddenErr, cannot},
		{"EC-05 restartPolicyRules", nil, add(func(e *corev1.EphemeralContainer) { e.RestartPolicyRules = make([]corev1.ContainerRestartRule, 1) }), e0 + ".restartPolicyRules", forbiddenErr, cannot},
		{"EC-05 resizePolicy", nil, add(func(e *corev1.EphemeralContainer) {
			e.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: "NotRequired"}}
		}), e0 + ".resizePolicy", forbiddenErr, cannot},
		{"EC-05 subPath", nil, add(func(e *corev1.EphemeralContainer) {
			e.VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/a", SubPath: "b"}}
		}), e0 + ".volumeMounts[0].subPath", forbiddenErr, cannot},
		{"EC-05 subPathExpr", nil, add(func(e *corev1.EphemeralContainer) {
			e.VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/a", SubPathExpr: "b"}}
		}), e0 + ".volumeMounts[0].subPathExpr", forbiddenErr, cannot},
		{"EC-05 volumes are fine", nil, add(func(e *corev1.EphemeralContainer) {
			e.VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/a"}}
		}), "", "", ""},
		{"EC-06 name of a main", nil, add(func(e *corev1.EphemeralContainer) { e.Name = "main" }), e0 + ".name", duplicateErr, ""},
		{"EC-06 name of an init", nil, add(func(e *corev1.EphemeralContainer) { e.Name = "setup" }), e0 + ".name", duplicateErr, ""},
		{"EC-06 name of a sidecar", nil, add(func(e *corev1.EphemeralContainer) { e.Name = "proxy" }), e0 + ".name", duplicateErr, ""},
		{"EC-06 name of another", had, add(func(e *corev1.EphemeralContainer) { e.Name = "old" }), "spec.ephemeralContainers[1].name", duplicateErr, ""},
		{"EC-07 target unknown", nil, add(func(e *corev1.EphemeralContainer) { e.TargetContainerName = "nobody" }), e0 + ".targetContainerName", notFoundErr, `"nobody"`},
		{"EC-07 target a debugger", had, add(func(e *corev1.EphemeralContainer) { e.TargetContainerName = "old" }), "spec.ephemeralContainers[1].targetContainerName", notFoundErr, ""},
		{"EC-07 target a main", nil, add(func(e *corev1.EphemeralContainer) { e.TargetContainerName = "main" }), "", "", ""},
		{"EC-07 target an init", nil, add(func(e *corev1.EphemeralContainer) { e.TargetContainerName = "setup" }), "", "", ""},
		{"EC-07 target a sidecar", nil, add(func(e *corev1.EphemeralContainer) { e.TargetContainerName = "proxy" }), "", "", ""},
		{"EC-09 static pod", func(p *corev1.Pod) {
			p.Annotations, p.Spec.NodeName = map[string]string{corev1.MirrorPodAnnotationKey: "x"}, "n"
		}, add(nil), "spec.ephemeralContainers", forbiddenErr, "static pods do not support ephemeral containers"},
		{"no image", nil, add(func(e *corev1.EphemeralContainer) { e.Image = "" }), e0 + ".image", requiredErr, ""},
		{"RS-03 a name of an image of 1 KiB", nil, add(func(e *corev1.EphemeralContainer) { e.Image = strings.Repeat("x", 1024) }), "", "", ""},
		{"RS-03 a longer one", nil, add(func(e *corev1.EphemeralContainer) { e.Image = strings.Repeat("x", 1025) }), e0 + ".image", field.ErrorTypeTooLong, "1024"},
		{"RS-03 one from before", func(p *corev1.Pod) {
			old := debugger("old")
			old.Image = strings.Repeat("x", 900_000)
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{old}
		}, add(func(*corev1.EphemeralContainer) {}), "", "", ""},
	})
}

func TestValidateStatusUpdate(t *testing.T) {
	ended := func(policy corev1.RestartPolicy, code int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.RestartPolicy = policy
			end := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: end}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "setup", State: end}, {Name: "proxy", State: end}}
		}
	}
	run := func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = corev1.ContainerState{} }
	rerun := func(i int) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.InitContainerStatuses[i].State = corev1.ContainerState{} }
	}
	const backward = "may not be transitioned to non-terminated state"
	checkChanged(t, ValidateStatusUpdate, []changed{
		{"running", nil, func(p *corev1.Pod) {
			p.Status = corev1.PodStatus{
				Phase: "Running", QOSClass: "Burstable", PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}},
				HostIP: "10.0.0.2", HostIPs: []corev1.HostIP{{IP: "10.0.0.2"}},
				Conditions: []corev1.PodCondition{{Type: "Ready", Status: "True"}, {Type: "example.com/x", Status: "False"}},
			}
		}, "", "", ""},
		{"node", nil, func(p *corev1.Pod) { p.Spec.NodeName = "n" }, "spec.nodeName", forbiddenErr, "may not be changed directly"},
		{"nominated node", nil, func(p *corev1.Pod) { p.Status.NominatedNodeName = "A B" }, "status.nominatedNodeName", invalidErr, ""},
		{"nominated node of a bound pod", func(p *corev1.Pod) { p.Spec.NodeName = "n" }, func(p *corev1.Pod) { p.Status.NominatedNodeName = "m" },
			"status.nominatedNodeName", forbiddenErr, "already bound"},
		{"phase", nil, func(p *corev1.Pod) { p.Status.Phase = "Dancing" }, "status.phase", notSupportedErr, ""},
		{"condition type", nil, func(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{{Type: "a b", Status: "True"}} }, "status.conditions[0].type", invalidErr, ""},
		{"condition status", nil, func(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{{Type: "a", Status: "Maybe"}} }, "status.conditions[0].status", notSupportedErr, ""},
		{"pod address", nil, func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "x", []corev1.PodIP{{IP: "x"}} }, "status.podIPs[0]", invalidErr, "valid IP"},
		{"pod addresses of one family", nil, func(p *corev1.Pod) {
			p.Status.PodIP, p.Status.PodIPs = "1.1.1.1", []corev1.PodIP{{IP: "1.1.1.1"}, {IP: "1.1.1.2"}}
		}, "status.podIPs", invalidErr, "no more than one IP for each IP family"},
		{"host address differs", nil, func(p *corev1.Pod) { p.Status.HostIPs = []corev1.HostIP{{IP: "1.1.1.1"}} }, "status.hostIPs[0].ip", invalidErr, "must be equal to `hostIP`"},
		{"QoS class", func(p *corev1.Pod) { p.Status.QOSClass = "Burstable" }, func(p *corev1.Pod) { p.Status.QOSClass = "BestEffort" }, "status.qosClass", invalidErr, "field is immutable"},
		{"user", nil, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", User: &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{UID: -1}}}}
		}, "status.containerStatuses[0].user.linux.uid", invalidErr, ""},
		{"observed generation", nil, func(p *corev1.Pod) { p.Status.ObservedGeneration = -1 }, "status.observedGeneration", invalidErr, ""},
		{"Always: main again", ended("Always", 0), run, "", "", ""},
		{"OnFailure: failed main again", ended("OnFailure", 1), run, "", "", ""},
		{"OnFailure: finished main again", ended("OnFailure", 0), run, "status.containerStatuses[0].state", forbiddenErr, backward},
		{"Never: main again", ended("Never", 1), run, "status.containerStatuses[0].state", forbiddenErr, backward},
		{"Never: init again", ended("Never", 0), rerun(0), "status.initContainerStatuses[0].state", forbiddenErr, backward},
		{"SC-05 Never: sidecar again", ended("Never", 0), rerun(1), "", "", ""},
		{"SC-19 OnFailure: finished init again after a reboot", ended("OnFailure", 0), rerun(0), "", "", ""},
	})
}

func TestValidateTemplate(t *testing.T) {
	pod := goodPod()
	template := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec}
	path := field.NewPath("spec", "template")
	for _, e := range ValidateTemplate(template, path) {
		t.Error(e)
	}
	template.Spec.Containers[0].Image = ""
	template.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugger("d")}
	wantError(t, ValidateTemplate(template, path), "spec.template.spec.containers[0].image", requiredErr, "")
	wantError(t, ValidateTemplate(template, path), "spec.template.spec.ephemeralContainers", forbiddenErr, "not allowed in pod template")
}
