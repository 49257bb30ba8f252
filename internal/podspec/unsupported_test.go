// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestUnsupported proves PL-15 for fields that are not honoured yet: each is named with its path and says what
// to do.
func TestUnsupported(t *testing.T) {
	const c0, v0 = "spec.containers[0]", "spec.volumes[0]"
	for _, row := range []struct {
		path string
		do   func(*corev1.Pod)
	}{
		{"spec.resourceClaims", func(p *corev1.Pod) { p.Spec.ResourceClaims = make([]corev1.PodResourceClaim, 1) }},
		{"spec.schedulingGroup", func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{} }},
		{"spec.evictionResponders",
			func(p *corev1.Pod) { p.Spec.EvictionResponders = make([]corev1.EvictionResponder, 1) }},
		{"spec.securityContext.windowsOptions", func(p *corev1.Pod) {
			p.Spec.SecurityContext.WindowsOptions = &corev1.WindowsSecurityContextOptions{}
		}},
		{c0 + ".resources.claims",
			func(p *corev1.Pod) { mainOf(p).Resources.Claims = make([]corev1.ResourceClaim, 1) }},
		{c0 + ".volumeMounts", func(p *corev1.Pod) { mainOf(p).VolumeMounts[0].BindMountOptions = []string{"noexec"} }},
		{c0 + ".securityContext.windowsOptions", func(p *corev1.Pod) {
			mainOf(p).SecurityContext.WindowsOptions = &corev1.WindowsSecurityContextOptions{}
		}},
		{v0 + ".iscsi", volumeOf(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}})},
		{v0 + ".fc", volumeOf(corev1.VolumeSource{FC: &corev1.FCVolumeSource{}})},
		{v0 + ".gitRepo", volumeOf(corev1.VolumeSource{GitRepo: &corev1.GitRepoVolumeSource{}})},
		{v0 + ".emptyDir.medium",
			volumeOf(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "HugePagesOfStone"}})},
		{v0 + ".emptyDir.medium",
			volumeOf(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "Tape"}})},
		{v0 + ".emptyDir.mode",
			volumeOf(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Mode: new(int32(0o700))}})},
		{"spec.volumes[1].configMap.defaultUser",
			func(p *corev1.Pod) { p.Spec.Volumes[1].ConfigMap.DefaultUser = new(int64(1)) }},
		{"spec.volumes[1].configMap.items[0].user",
			func(p *corev1.Pod) { p.Spec.Volumes[1].ConfigMap.Items[0].User = new(int64(1)) }},
		{"spec.volumes[2].secret.defaultUser",
			func(p *corev1.Pod) { p.Spec.Volumes[2].Secret.DefaultUser = new(int64(1)) }},
		{"spec.volumes[4].downwardAPI.items[0].user",
			func(p *corev1.Pod) { p.Spec.Volumes[4].DownwardAPI.Items[0].User = new(int64(1)) }},
		{"spec.volumes[5].projected.sources[0].serviceAccountToken.user", func(p *corev1.Pod) {
			p.Spec.Volumes[5].Projected.Sources[0].ServiceAccountToken.User = new(int64(1))
		}},
		{"spec.volumes[5].projected.sources[0].clusterTrustBundle.user", func(p *corev1.Pod) {
			p.Spec.Volumes[5].Projected.Sources[0] = corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{User: new(int64(1))}}
		}},
		{"spec.volumes[5].projected.sources[0].podCertificate.user", func(p *corev1.Pod) {
			p.Spec.Volumes[5].Projected.Sources[0] = corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{User: new(int64(1))}}
		}},
	} {
		t.Run("PL-15 "+row.path, func(t *testing.T) {
			pod := goodPod()
			pod.Spec.InitContainers = pod.Spec.InitContainers[:1] // without the sidecar
			row.do(pod)
			got := Unsupported(pod)
			wantError(t, got, row.path, forbiddenErr, "not supported yet: ")
			if len(got) != 1 {
				t.Errorf("want one error, got %v", got)
			}
		})
	}
}

// TestSupported: what this node does honour is not refused.
func TestSupported(t *testing.T) {
	pod := goodPod()
	pod.Spec.InitContainers = pod.Spec.InitContainers[:1]
	spec := &pod.Spec
	spec.ShareProcessNamespace, spec.HostIPC, spec.HostNetwork, spec.HostUsers = new(true), true, true, new(false)
	spec.HostAliases, spec.Hostname, spec.Subdomain = []corev1.HostAlias{{IP: "1.1.1.1"}}, "a", "b"
	spec.DNSConfig, spec.OS, spec.SetHostnameAsFQDN = &corev1.PodDNSConfig{}, &corev1.PodOS{Name: "linux"}, new(true)
	spec.HostnameOverride = new("a.example")
	spec.Affinity, spec.TopologySpreadConstraints = &corev1.Affinity{}, make([]corev1.TopologySpreadConstraint, 1)
	spec.SecurityContext = &corev1.PodSecurityContext{
		FSGroup: new(int64(1)), SupplementalGroups: []int64{1}, RunAsNonRoot: new(true),
		Sysctls: make([]corev1.Sysctl, 1), SeccompProfile: &corev1.SeccompProfile{Type: "RuntimeDefault"},
		SupplementalGroupsPolicy: new(corev1.SupplementalGroupsPolicyStrict),
	}
	mainOf(pod).SecurityContext = &corev1.SecurityContext{
		Privileged: new(true), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}},
		ProcMount:    new(corev1.UnmaskedProcMount), AppArmorProfile: &corev1.AppArmorProfile{Type: "RuntimeDefault"},
	}
	mainOf(pod).ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: "NotRequired"}}
	spec.Volumes[0].EmptyDir = &corev1.EmptyDirVolumeSource{Medium: "Memory", SizeLimit: new(quantity("1Mi"))}
	for _, e := range Unsupported(pod) {
		t.Error(e)
	}
}

func TestUnsupportedOnThisMachine(t *testing.T) {
	pod := goodPod()
	pod.Spec.InitContainers = nil
	pod.Spec.SecurityContext.AppArmorProfile = &corev1.AppArmorProfile{Type: "RuntimeDefault"}
	mainOf(pod).SecurityContext.AppArmorProfile = &corev1.AppArmorProfile{Type: "Unconfined"}
	got := UnsupportedOn(pod, Host{})
	wantError(t, got, "spec.securityContext.appArmorProfile", forbiddenErr, "no AppArmor")
	if len(got) != 1 {
		t.Errorf("want one error, got %v", got)
	}
	if got := UnsupportedOn(pod, Host{AppArmor: true}); len(got) > 0 {
		t.Error(got)
	}
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{SupplementalGroupsPolicy: new(corev1.SupplementalGroupsPolicyStrict)}
	wantError(t, UnsupportedOn(pod, Host{}), "spec.securityContext.supplementalGroupsPolicy", forbiddenErr, "use Merge")
	if got := UnsupportedOn(pod, Host{GroupsPolicy: true}); len(got) > 0 {
		t.Error(got)
	}
	pod.Spec.HostUsers = new(false)
	wantError(t, UnsupportedOn(pod, Host{GroupsPolicy: true, NoUsers: "folder /x is closed"}), "spec.hostUsers",
		forbiddenErr, "folder /x is closed; or leave hostUsers out")
	if got := UnsupportedOn(pod, Host{GroupsPolicy: true}); len(got) > 0 {
		t.Error(got)
	}
}

// TestEveryGapSaysWhatToDo: a message without advice is no help.
func TestEveryGapSaysWhatToDo(t *testing.T) {
	var all []string
	for _, g := range podGaps() {
		all = append(all, g.say)
	}
	for _, g := range containerGaps() {
		all = append(all, g.say)
	}
	for _, say := range all {
		if !strings.ContainsAny(say, ";") && !strings.HasPrefix(say, "use ") && !strings.Contains(say, "STOPSIGNAL") {
			t.Errorf("%q does not say what to do", say)
		}
	}
}
