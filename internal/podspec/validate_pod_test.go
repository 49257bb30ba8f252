// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

func TestValidateMetadata(t *testing.T) {
	checkSpoiled(t, []spoiled{
		{"no name", func(p *corev1.Pod) { p.Name = "" }, "metadata.name", requiredErr, "name or generateName is required"},
		{"name upper case", func(p *corev1.Pod) { p.Name = "Web" }, "metadata.name", invalidErr, "lowercase RFC 1123 subdomain"},
		{"name too long", func(p *corev1.Pod) { p.Name = strings.Repeat("a", 254) }, "metadata.name", invalidErr, "must be no more than 253"},
		{"no namespace", func(p *corev1.Pod) { p.Namespace = "" }, "metadata.namespace", requiredErr, ""},
		{"namespace with dot", func(p *corev1.Pod) { p.Namespace = "a.b" }, "metadata.namespace", invalidErr, ""},
		{"label key", func(p *corev1.Pod) { p.Labels["a b"] = "" }, "metadata.labels", invalidErr, ""},
		{"label value", func(p *corev1.Pod) { p.Labels["a"] = strings.Repeat("x", 64) }, "metadata.labels", invalidErr, "must be no more than 63"},
		{"annotation key", func(p *corev1.Pod) { p.Annotations = map[string]string{"a b": ""} }, "metadata.annotations", invalidErr, ""},
		{"annotations too big", func(p *corev1.Pod) { p.Annotations = map[string]string{"a": strings.Repeat("x", 256*1024)} }, "metadata.annotations", tooLongErr, "262144"},
		{"finalizer", func(p *corev1.Pod) { p.Finalizers = []string{"a b"} }, "metadata.finalizers", invalidErr, ""},
		{"finalizer without domain", func(p *corev1.Pod) { p.Finalizers = []string{"mine"} }, "metadata.finalizers[0]", invalidErr, "neither a standard finalizer name"},
		{"owner without uid", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n"}}
		}, "metadata.ownerReferences[0].uid", requiredErr, ""},
		{"two controllers", func(p *corev1.Pod) {
			o := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "X", Name: "n", UID: "1", Controller: new(true)}
			p.OwnerReferences = []metav1.OwnerReference{o, o}
		}, "metadata.ownerReferences", invalidErr, "Only one reference can have Controller set to true"},
		{"negative generation", func(p *corev1.Pod) { p.Generation = -1 }, "metadata.generation", invalidErr, ""},
		{"mirror pod without node", func(p *corev1.Pod) { p.Annotations = map[string]string{"kubernetes.io/config.mirror": "x"} }, "metadata.annotations[kubernetes.io/config.mirror]", invalidErr, "must set spec.nodeName"},
		{"deletion cost", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"controller.kubernetes.io/pod-deletion-cost": "+1"}
		}, "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]", invalidErr, "32bit integer"},
		{"AppArmor annotation of nobody", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/nobody": "unconfined"}
		}, "metadata.annotations[container.apparmor.security.beta.kubernetes.io/nobody]", invalidErr, "container not found"},
		{"AppArmor annotation of nonsense", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/main": "x"}
		}, "metadata.annotations[container.apparmor.security.beta.kubernetes.io/main]", invalidErr, "invalid AppArmor profile name"},
	})
}

func TestValidateSpec(t *testing.T) {
	checkSpoiled(t, []spoiled{
		{"no containers", func(p *corev1.Pod) { p.Spec.Containers = nil }, "spec.containers", requiredErr, ""},
		{"EC-02 ephemeral containers on create", func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugger("debug")}
		}, "spec.ephemeralContainers", forbiddenErr, "cannot be set on create"},
		{"no restartPolicy", func(p *corev1.Pod) { p.Spec.RestartPolicy = "" }, "spec.restartPolicy", requiredErr, ""},
		{"restartPolicy", func(p *corev1.Pod) { p.Spec.RestartPolicy = "Sometimes" }, "spec.restartPolicy", notSupportedErr, `"Sometimes": supported values: "Always", "OnFailure", "Never"`},
		{"deadline zero", func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(0)) }, "spec.activeDeadlineSeconds", invalidErr, "must be between 1 and 2147483647, inclusive"},
		{"grace negative", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(-1)) }, "spec.terminationGracePeriodSeconds", invalidErr, "must be greater than or equal to 0"},
		{"service account", func(p *corev1.Pod) {
			p.Spec.ServiceAccountName, p.Spec.DeprecatedServiceAccount = "A", "A"
		}, "spec.serviceAccountName", invalidErr, "RFC 1123"},
		{"two service accounts", func(p *corev1.Pod) { p.Spec.DeprecatedServiceAccount = "other" }, "spec.serviceAccount", invalidErr, "same as"},
		{"node name", func(p *corev1.Pod) { p.Spec.NodeName = "a_b" }, "spec.nodeName", invalidErr, ""},
		{"node with gates", func(p *corev1.Pod) {
			p.Spec.NodeName, p.Spec.SchedulingGates = "n", []corev1.PodSchedulingGate{{Name: "g"}}
		}, "spec.nodeName", forbiddenErr, "cannot be set until all schedulingGates have been cleared"},
		{"PID-01 shared and host, one field", func(p *corev1.Pod) { p.Spec.HostPID, p.Spec.ShareProcessNamespace = true, new(true) }, "spec.shareProcessNamespace", invalidErr, "cannot both be enabled"},
		{"PID-01 shared and host, other field", func(p *corev1.Pod) { p.Spec.HostPID, p.Spec.ShareProcessNamespace = true, new(true) }, "spec.hostPID", invalidErr, "cannot both be enabled"},
		{"hostUsers and hostNetwork", func(p *corev1.Pod) { p.Spec.HostUsers, p.Spec.HostNetwork = new(false), true }, "spec.hostNetwork", forbiddenErr, "when `hostUsers` is false"},
		{"hostUsers and hostPID", func(p *corev1.Pod) { p.Spec.HostUsers, p.Spec.HostPID = new(false), true }, "spec.hostPID", forbiddenErr, ""},
		{"hostUsers and hostIPC", func(p *corev1.Pod) { p.Spec.HostUsers, p.Spec.HostIPC = new(false), true }, "spec.hostIPC", forbiddenErr, ""},
		{"hostUsers and devices", func(p *corev1.Pod) {
			p.Spec.HostUsers = new(false)
			mainOf(p).VolumeDevices = []corev1.VolumeDevice{{Name: "x", DevicePath: "/dev/x"}}
		}, "spec.containers[0].volumeDevices", forbiddenErr, ""},
		{"hostNetwork port", func(p *corev1.Pod) { p.Spec.HostNetwork = true }, "spec.containers[0].ports[0].hostPort", invalidErr, "must match `containerPort`"},
		{"readiness gate", func(p *corev1.Pod) { p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "a b"}} }, "spec.readinessGates[0].conditionType", invalidErr, ""},
		{"os empty", func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{} }, "spec.os.name", requiredErr, ""},
		{"os unknown", func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: "plan9"} }, "spec.os", notSupportedErr, `"linux", "windows"`},
		{"windows options on linux pod", func(p *corev1.Pod) {
			p.Spec.OS = &corev1.PodOS{Name: "linux"}
			p.Spec.SecurityContext.WindowsOptions = &corev1.WindowsSecurityContextOptions{}
		}, "spec.securityContext.windowsOptions", forbiddenErr, "windows options cannot be set for a linux pod"},
		{"windows options on linux container", func(p *corev1.Pod) {
			p.Spec.OS = &corev1.PodOS{Name: "linux"}
			mainOf(p).SecurityContext.WindowsOptions = &corev1.WindowsSecurityContextOptions{}
		}, "spec.containers[0].securityContext.windowsOptions", forbiddenErr, ""},
		{"linux user on windows", func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: "windows"} }, "spec.containers[0].securityContext.runAsUser", forbiddenErr, "cannot be set for a windows pod"},
		{"hostPID on windows", func(p *corev1.Pod) { p.Spec.OS, p.Spec.HostPID = &corev1.PodOS{Name: "windows"}, true }, "spec.hostPID", forbiddenErr, ""},
		{"fsGroup on windows", func(p *corev1.Pod) {
			p.Spec.OS, p.Spec.SecurityContext.FSGroup = &corev1.PodOS{Name: "windows"}, new(int64(1))
		}, "spec.securityContext.fsGroup", forbiddenErr, ""},
		{"hostname", func(p *corev1.Pod) { p.Spec.Hostname = "a.b" }, "spec.hostname", invalidErr, "must not contain dots"},
		{"hostname too long", func(p *corev1.Pod) { p.Spec.Hostname = strings.Repeat("a", 64) }, "spec.hostname", invalidErr, "must be no more than 63"},
		{"subdomain", func(p *corev1.Pod) { p.Spec.Subdomain = "A" }, "spec.subdomain", invalidErr, ""},
		{"hostnameOverride", func(p *corev1.Pod) { p.Spec.HostnameOverride = new("a_b") }, "spec.hostnameOverride", invalidErr, ""},
		{"hostnameOverride too long", func(p *corev1.Pod) { p.Spec.HostnameOverride = new(strings.Repeat("a", 65)) }, "spec.hostnameOverride", invalidErr, "64"},
		{"hostnameOverride and FQDN", func(p *corev1.Pod) {
			p.Spec.HostnameOverride, p.Spec.SetHostnameAsFQDN = new("a"), new(true)
		}, "spec.hostnameOverride", forbiddenErr, "setHostnameAsFQDN"},
		{"hostnameOverride and hostNetwork", func(p *corev1.Pod) { p.Spec.HostnameOverride, p.Spec.HostNetwork = new("a"), true }, "spec.hostnameOverride", forbiddenErr, "hostNetwork"},
		{"hostAlias ip", func(p *corev1.Pod) { p.Spec.HostAliases = []corev1.HostAlias{{IP: "1.2.3"}} }, "spec.hostAliases[0].ip", invalidErr, "must be a valid IP address"},
		{"hostAlias name", func(p *corev1.Pod) {
			p.Spec.HostAliases = []corev1.HostAlias{{IP: "1.2.3.4", Hostnames: []string{"ok", "a_b"}}}
		}, "spec.hostAliases[0].hostnames[1]", invalidErr, ""},
		{"dnsPolicy none given", func(p *corev1.Pod) { p.Spec.DNSPolicy = "" }, "spec.dnsPolicy", requiredErr, ""},
		{"dnsPolicy", func(p *corev1.Pod) { p.Spec.DNSPolicy = "Mine" }, "spec.dnsPolicy", notSupportedErr, "ClusterFirstWithHostNet"},
		{"dnsPolicy None without config", func(p *corev1.Pod) { p.Spec.DNSPolicy = "None" }, "spec.dnsConfig", requiredErr, "must provide `dnsConfig`"},
		{"dnsPolicy None without server", func(p *corev1.Pod) { p.Spec.DNSPolicy, p.Spec.DNSConfig = "None", &corev1.PodDNSConfig{} }, "spec.dnsConfig.nameservers", requiredErr, "at least one DNS nameserver"},
		{"too many nameservers", func(p *corev1.Pod) {
			p.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"}}
		}, "spec.dnsConfig.nameservers", invalidErr, "must not have more than 3 nameservers"},
		{"nameserver", func(p *corev1.Pod) { p.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"dns"}} }, "spec.dnsConfig.nameservers[0]", invalidErr, "valid IP"},
		{"search", func(p *corev1.Pod) { p.Spec.DNSConfig = &corev1.PodDNSConfig{Searches: []string{"a b"}} }, "spec.dnsConfig.searches[0]", invalidErr, ""},
		{"too many searches", func(p *corev1.Pod) { p.Spec.DNSConfig = &corev1.PodDNSConfig{Searches: make([]string, 33)} }, "spec.dnsConfig.searches", invalidErr, "32 search paths"},
		{"searches too long", func(p *corev1.Pod) {
			p.Spec.DNSConfig = &corev1.PodDNSConfig{Searches: []string{strings.Repeat("a", 2049)}}
		}, "spec.dnsConfig.searches", invalidErr, "2048 characters"},
		{"dns option", func(p *corev1.Pod) { p.Spec.DNSConfig = &corev1.PodDNSConfig{Options: []corev1.PodDNSConfigOption{{}}} }, "spec.dnsConfig.options[0]", requiredErr, ""},
		{"overhead negative", func(p *corev1.Pod) { p.Spec.Overhead = corev1.ResourceList{"cpu": quantity("-1")} }, "spec.overhead[cpu]", invalidErr, "greater than or equal to 0"},
		{"pod resource name", func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"ephemeral-storage": quantity("1")}}
		}, "spec.resources.requests[ephemeral-storage]", notSupportedErr, "cpu"},
		{"pod resources less than containers'", func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": quantity("1m")}}
		}, "spec.resources.requests[cpu]", invalidErr, "aggregate container requests"},
		{"container limit over pod's", func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": quantity("500m")}}
		}, "spec.containers[0].resources.limits[cpu]", invalidErr, "pod limits"},
		{"pod claims", func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "a"}}}
		}, "spec.resources.claims", forbiddenErr, ""},
		{"resource claim without source", func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a"}} }, "spec.resourceClaims[0]", invalidErr, "must specify one of"},
		{"resource claim with both", func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: new("b"), ResourceClaimTemplateName: new("c")}}
		}, "spec.resourceClaims[0]", invalidErr, "at most one"},
		{"resource claim name", func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "A", ResourceClaimName: new("b")}}
		}, "spec.resourceClaims[0].name", invalidErr, ""},
		{"resource claim object", func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: new("B")}}
		}, "spec.resourceClaims[0].resourceClaimName", invalidErr, ""},
		{"resource claim template", func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a", ResourceClaimTemplateName: new("")}}
		}, "spec.resourceClaims[0].resourceClaimTemplateName", requiredErr, ""},
		{"resource claims alike", func(p *corev1.Pod) {
			c := corev1.PodResourceClaim{Name: "a", ResourceClaimName: new("b")}
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{c, c}
		}, "spec.resourceClaims[1].name", duplicateErr, ""},
		{"responder without domain", func(p *corev1.Pod) {
			p.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "a", Priority: new(int32(1000))}}
		}, "spec.evictionResponders[0].name", invalidErr, "domain-prefixed"},
		{"responder of kubernetes", func(p *corev1.Pod) {
			p.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "a.k8s.io/b", Priority: new(int32(1000))}}
		}, "spec.evictionResponders[0].name", invalidErr, "reserved"},
		{"responder priority missing", func(p *corev1.Pod) { p.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "a.b/c"}} }, "spec.evictionResponders[0].priority", requiredErr, ""},
		{"responder priority reserved", func(p *corev1.Pod) {
			p.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "a.b/c", Priority: new(int32(5))}}
		}, "spec.evictionResponders[0].priority", invalidErr, "reserved"},
		{"too many responders", func(p *corev1.Pod) { p.Spec.EvictionResponders = make([]corev1.EvictionResponder, 11) }, "spec.evictionResponders", tooManyErr, "10"},
		{"responders in a group", func(p *corev1.Pod) {
			p.Spec.EvictionResponders = make([]corev1.EvictionResponder, 1)
			p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("g")}
		}, "spec.evictionResponders", forbiddenErr, "schedulingGroup"},
	})
}

func debugger(name string) corev1.EphemeralContainer {
	e := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "toolbox:1"}}
	defaultContainer(AsContainer(&e))
	return e
}
