// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/cluster/debugapi/rights"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

func podWith(change func(*corev1.PodSpec)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main"}}}}
	if change != nil {
		change(&p.Spec)
	}
	return p
}

func adds(names ...corev1.Capability) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Containers[0].SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: names}}
	}
}

// Every request needs the right to do it, the profile's, and the host's where the pod leads there. Proves DA-04.
func TestNeeds(t *testing.T) {
	privileged := &corev1.SecurityContext{Privileged: ptr.To(true)}
	hostPath := func(s *corev1.PodSpec) {
		s.Volumes = []corev1.Volume{{Name: "logs", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/var/log"}}}}
	}
	shell := rights.Request{As: wire.Shell, Profile: "general"}
	for _, c := range []struct {
		what string
		pod  func(*corev1.PodSpec)
		ask  rights.Request
		want []string
	}{
		{"a shell", nil, shell, []string{"create pods/shell web wherry-debug", "use profiles general wherry-debug"}},
		{"one that may do much", nil, rights.Request{As: wire.Shell, Profile: "sysadmin"},
			[]string{"create pods/shell web wherry-debug", "use profiles sysadmin wherry-privileged"}},
		{"a profile that nobody knows", nil, rights.Request{As: wire.Shell, Profile: "new"},
			[]string{"create pods/shell web wherry-debug", "use profiles new wherry-privileged"}},
		{"one that writes", nil, rights.Request{As: wire.Shell, Profile: "restricted", Writable: true}, []string{
			"create pods/shell web wherry-debug", "create pods/files web wherry-debug",
			"use profiles restricted wherry-debug"}},
		{"an image", nil, rights.Request{As: wire.Exec}, []string{"create pods/exec web wherry-debug"}},
		{"an image that writes", nil, rights.Request{As: wire.Exec, Writable: true}, []string{
			"create pods/exec web wherry-debug", "create pods/files web wherry-debug"}},
		{"files out", nil, rights.Request{As: wire.Files}, []string{"get pods/files web wherry-look"}},
		{"files in", nil, rights.Request{As: wire.Files, Writable: true},
			[]string{"create pods/files web wherry-debug"}},
		{"the machine's network", func(s *corev1.PodSpec) { s.HostNetwork = true }, rights.Request{As: wire.Exec},
			[]string{"create pods/exec web wherry-debug", "use profiles host wherry-privileged"}},
		{"the machine's processes", func(s *corev1.PodSpec) { s.HostPID = true }, rights.Request{As: wire.Files},
			[]string{"get pods/files web wherry-look", "use profiles host wherry-privileged"}},
		{"the machine's IPC", func(s *corev1.PodSpec) { s.HostIPC = true }, rights.Request{As: wire.Exec},
			[]string{"create pods/exec web wherry-debug", "use profiles host wherry-privileged"}},
		{"a privileged container", func(s *corev1.PodSpec) { s.Containers[0].SecurityContext = privileged },
			rights.Request{As: wire.Exec},
			[]string{"create pods/exec web wherry-debug", "use profiles host wherry-privileged"}},
		{"a privileged init container", func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "init", SecurityContext: privileged}}
		}, rights.Request{As: wire.Files}, []string{"get pods/files web wherry-look",
			"use profiles host wherry-privileged"}},
		{"a privileged debug container", func(s *corev1.PodSpec) {
			s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: "debug", SecurityContext: privileged}}}
		}, rights.Request{As: wire.Exec}, []string{"create pods/exec web wherry-debug",
			"use profiles host wherry-privileged"}},
		{"an image beside a container's processes", nil, rights.Request{As: wire.Exec, Joins: true}, []string{
			"create pods/exec web wherry-debug", "use profiles general wherry-debug"}},
		{"a capability", adds("NET_BIND_SERVICE", "NET_ADMIN"), rights.Request{As: wire.Exec},
			[]string{"create pods/exec web wherry-debug"}},
		{"one as good as root", adds("CHOWN", "cap_sys_admin"), rights.Request{As: wire.Exec},
			[]string{"create pods/exec web wherry-debug", "use profiles host wherry-privileged"}},
		{"all of them", adds("ALL"), rights.Request{As: wire.Files},
			[]string{"get pods/files web wherry-look", "use profiles host wherry-privileged"}},
		{"all of /proc", func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext = &corev1.SecurityContext{ProcMount: ptr.To(corev1.UnmaskedProcMount)}
		}, rights.Request{As: wire.Exec},
			[]string{"create pods/exec web wherry-debug", "use profiles host wherry-privileged"}},
		{"a folder of the machine to read", hostPath, rights.Request{As: wire.Files},
			[]string{"get pods/files web wherry-look", "use profiles host wherry-privileged"}},
		{"one in a shell, which reaches its sockets", hostPath, rights.Request{As: wire.Exec},
			[]string{"create pods/exec web wherry-debug", "use profiles host wherry-privileged"}},
		{"one of a claim", nil, rights.Request{As: wire.Files, Claimed: "data"},
			[]string{"get pods/files web wherry-look", "use profiles host wherry-privileged"}},
		{"a folder of the machine to write to", hostPath, rights.Request{As: wire.Files, Writable: true},
			[]string{"create pods/files web wherry-debug", "use profiles host wherry-privileged"}},
	} {
		var got []string
		for _, n := range rights.Needs(podWith(c.pod), c.ask) {
			a := n.Attributes(&user.DefaultInfo{Name: "jane"}, "shop")
			if a.GetNamespace() != "shop" || a.GetAPIGroup() != wire.Group || !a.IsResourceRequest() ||
				a.GetUser().GetName() != "jane" || a.GetVerb() != n.Verb || a.GetName() != n.Name {
				t.Errorf("%s: %+v is asked for as %+v", c.what, n, a)
			}
			resource := a.GetResource()
			if a.GetSubresource() != "" {
				resource += "/" + a.GetSubresource()
			}
			got = append(got, strings.Join([]string{n.Verb, resource, n.Name, n.Role}, " "))
			if words := n.Missing("jane", "shop"); !strings.Contains(words, n.Role) ||
				!strings.Contains(words, n.Why) ||
				!strings.Contains(words, "namespace shop") || !strings.Contains(words, n.Verb+" "+resource) {
				t.Errorf("%s: %q does not say what is missing, where and which role has it", c.what, words)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
}
