// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/podspec"
)

// editor is somebody who may edit a namespace.
func editor(t *testing.T, ns string) *kubernetes.Clientset {
	t.Helper()
	who := "editor-of-" + ns
	bindTo(t, client(t), ns, who, rbacv1.RoleRef{Kind: "ClusterRole", Name: "edit"})
	return clientOf(t, person(t, shared.srv, who))
}

// TestAttackDebugRunsAgain: nobody has a debug container run again by writing what the server keeps of it, nor changes
// what it runs, by whatever verb. (ATTACK A5, A6; DC-06, EC-02, EC-03, EC-04)
func TestAttackDebugRunsAgain(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	ed := editor(t, ns).CoreV1().Pods(ns)
	n.pod(t, ns, pod("fresh"))
	n.pod(t, ns, pod("debugged"))
	if _, err := execInto(t, adminConfig(t), "spdy", ns, "debugged", session+"&ephemeralContainerTTL=1h"); err != nil {
		t.Fatal(err)
	}
	const again = `{"debug":{"run":7}}`
	stored := map[string]string{}
	for _, name := range []string{"fresh", "debugged"} {
		stored[name] = podNow(t, c, ns, name).Annotations[podspec.DebugAnnotation]
		change := func(change func(*corev1.Pod)) func() error {
			return func() error {
				p := podNow(t, c, ns, name)
				change(p)
				_, err := ed.Update(t.Context(), p, metav1.UpdateOptions{})
				return err
			}
		}
		patched := func(kind types.PatchType, body string, sub ...string) func() error {
			return func() error {
				_, err := ed.Patch(t.Context(), name, kind, []byte(body), metav1.PatchOptions{FieldManager: "x"},
					sub...)
				return err
			}
		}
		merged := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, podspec.DebugAnnotation, again)
		pointer := strings.ReplaceAll(podspec.DebugAnnotation, "/", "~1")
		applied := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"annotations":{%q:%q}}}`, name,
			podspec.DebugAnnotation, again)
		for what, try := range map[string]func() error{
			"annotate":          patched(types.MergePatchType, merged),
			"a strategic patch": patched(types.StrategicMergePatchType, merged),
			"a JSON patch": patched(types.JSONPatchType,
				fmt.Sprintf(`[{"op":"add","path":"/metadata/annotations","value":{%q:%q}}]`, podspec.DebugAnnotation,
					again)),
			"a JSON patch of one": patched(types.JSONPatchType,
				fmt.Sprintf(`[{"op":"add","path":"/metadata/annotations/%s","value":%q}]`, pointer, again)),
			"an apply":             patched(types.ApplyPatchType, applied),
			"the status":           patched(types.MergePatchType, merged, "status"),
			"ephemeral containers": patched(types.MergePatchType, merged, "ephemeralcontainers"),
			"a resize":             patched(types.MergePatchType, merged, "resize"),
			"a replacement": change(func(p *corev1.Pod) {
				metav1.SetMetaDataAnnotation(&p.ObjectMeta, podspec.DebugAnnotation, again)
			}),
			"an ephemeral one more": change(func(p *corev1.Pod) {
				p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, ephemeral("more"))
			}),
			"another command": change(func(p *corev1.Pod) {
				if p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers[:0:0],
					p.Spec.EphemeralContainers...); len(p.Spec.EphemeralContainers) > 0 {
					p.Spec.EphemeralContainers[0].Command = []string{"/evil"}
					return
				}
				p.Spec.EphemeralContainers = []corev1.EphemeralContainer{ephemeral("new")}
			}),
		} {
			before := podNow(t, c, ns, name)
			err := try()
			if err == nil && what != "a JSON patch of one" ||
				err != nil && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			after := podNow(t, c, ns, name)
			if got := after.Annotations[podspec.DebugAnnotation]; got != stored[name] {
				t.Errorf("%s, %s: it has %s, had %s", name, what, got, stored[name])
			}
			if a, b := jsonOf(t, after.Spec), jsonOf(t, before.Spec); a != b {
				t.Errorf("%s, %s: the spec is %s, was %s", name, what, a, b)
			}
		}
	}
	made := pod("made")
	made.Annotations = map[string]string{podspec.DebugAnnotation: again}
	if p, err := ed.Create(t.Context(), made, metav1.CreateOptions{}); err != nil ||
		p.Annotations[podspec.DebugAnnotation] != "" {
		t.Errorf("a new pod: %v, %v", p.Annotations, err)
	}
	made = pod("with-one")
	made.Spec.EphemeralContainers = []corev1.EphemeralContainer{ephemeral("debug")}
	if _, err := ed.Create(t.Context(), made, metav1.CreateOptions{}); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "spec.ephemeralContainers") {
		t.Errorf("a new pod with an ephemeral container: %v", err)
	}
	if stored["debugged"] == "" {
		t.Error("nothing is stored of the debug container")
	}
}

func ephemeral(name string) corev1.EphemeralContainer {
	return corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name,
		Image: "tools:1"}}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAttackMirror: that a pod calls itself a mirror of a node's file frees it of nothing. (ATTACK A29; PL-12, SC-16,
// EC-21)
func TestAttackMirror(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	ed := editor(t, ns)
	newQuota(t, c, ns, hard("pods", "1"))
	mirror := func(name string, change func(*corev1.Pod)) error {
		p := pod(name)
		p.Annotations = map[string]string{"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file",
			"kubernetes.io/config.hash": "x"}
		p.Spec.NodeName = "node-1"
		change(p)
		_, err := ed.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{})
		return err
	}
	if err := mirror("first", func(*corev1.Pod) {}); err != nil && !apierrors.IsForbidden(err) {
		t.Errorf("the first: %v", err)
	}
	createOrHave(t, c, ns)
	forbidden(t, "one more than the quota", mirror("second", func(*corev1.Pod) {}), "exceeded quota")
	if _, err := c.CoreV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"baseline"}}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	forbidden(t, "a privileged one", mirror("third", func(p *corev1.Pod) {
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	}), "violates PodSecurity")
	forbidden(t, "one with the node's files", mirror("fourth", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v",
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	}), "violates PodSecurity")
}

// createOrHave fills the quota of one pod.
func createOrHave(t *testing.T, c kubernetes.Interface, ns string) {
	t.Helper()
	if all, err := c.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	} else if len(all.Items) == 0 {
		createPod(t, c, ns, pod("filler"))
	}
}

// TestAttackLevels: under a level no way into a pod takes more than the level lets: every profile of a debug session,
// ephemeral containers, what else a patch of them carries, updates and resizes. (ATTACK A20; EC-21, RS-11)
func TestAttackLevels(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	privileged := `"securityContext":{"privileged":true}`
	for level, lets := range map[string][]string{"baseline": {"baseline", "restricted", "legacy"},
		"restricted": {"restricted"}} {
		ns := namespace(t, c)
		w := world{c: c, n: n, ns: ns}
		w.label(t, map[string]string{"pod-security.kubernetes.io/enforce": level})
		meek := pod("web")
		meek.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(1000)),
			SeccompProfile: &corev1.SeccompProfile{Type: "RuntimeDefault"}}
		meek.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: new(false),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
		n.pod(t, ns, meek)
		for i, profile := range []string{"general", "baseline", "restricted", "netadmin", "sysadmin", "legacy"} {
			_, err := execInto(t, adminConfig(t), "websocket", ns, "web",
				fmt.Sprintf("stdout=true&ephemeralContainerName=d%d&ephemeralContainerImage=tools:1&ephemeralContainerProfile=%s", i, profile))
			allowed := strings.Contains(" "+strings.Join(lets, " ")+" ", " "+profile+" ")
			if allowed && err != nil {
				t.Errorf("%s, profile %s: %v", level, profile, err)
			}
			if !allowed {
				if s := statusOf(t, err); s.Code != http.StatusForbidden ||
					!strings.Contains(s.Message, "violates PodSecurity") {
					t.Errorf("%s, profile %s: %+v", level, profile, s)
				}
			}
		}
		before := jsonOf(t, podNow(t, c, ns, "web").Spec)
		for what, a := range map[string]struct{ sub, body string }{
			"privileged": {"ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"x","image":"i",` +
				privileged + `}]}}`},
			"all capabilities": {"ephemeralcontainers",
				`{"spec":{"ephemeralContainers":[{"name":"x","image":"i","securityContext":{"capabilities":{"add":["ALL"]}}}]}}`},
			"unmasked proc": {"ephemeralcontainers",
				`{"spec":{"ephemeralContainers":[{"name":"x","image":"i","securityContext":{"procMount":"Unmasked"}}]}}`},
			"no seccomp": {"ephemeralcontainers",
				`{"spec":{"ephemeralContainers":[{"name":"x","image":"i","securityContext":{"seccompProfile":{"type":"Unconfined"}}}]}}`},
			"a mount of nothing": {"ephemeralcontainers",
				`{"spec":{"ephemeralContainers":[{"name":"x","image":"i","volumeMounts":[{"name":"nothing","mountPath":"/v"}]}]}}`},
			"host processes":  {"", `{"spec":{"hostPID":true}}`},
			"made privileged": {"", `{"spec":{"containers":[{"name":"main",` + privileged + `}]}}`},
			"a volume":        {"", `{"spec":{"volumes":[{"name":"v","hostPath":{"path":"/"}}]}}`},
		} {
			var sub []string
			if a.sub != "" {
				sub = []string{a.sub}
			}
			_, err := c.CoreV1().Pods(ns).Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(a.body),
				metav1.PatchOptions{}, sub...)
			if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
				t.Errorf("%s, %s: %v", level, what, err)
			}
		}
		// What a write by a subresource carries besides is not the subresource's to change.
		for sub, body := range map[string]string{
			"ephemeralcontainers": `{"spec":{"hostPID":true,"hostNetwork":true,"volumes":[{"name":"v","hostPath":{"path":"/"}}],"containers":[{"name":"main",` + privileged + `}]}}`,
			"resize":              `{"spec":{"hostPID":true,"containers":[{"name":"main",` + privileged + `}]}}`,
			"status":              `{"spec":{"hostPID":true}}`,
		} {
			_, err := c.CoreV1().Pods(ns).Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(body),
				metav1.PatchOptions{}, sub)
			t.Logf("%s, carried by %s: %v", level, sub, err)
		}
		if after := jsonOf(t, podNow(t, c, ns, "web").Spec); after != before {
			t.Errorf("%s: the pod is %s, was %s", level, after, before)
		}
	}
}

// TestAttackPodFields: what a pod says of itself does not come to mean something else on the node, in a file or in a
// path. (ATTACK A21, A28; PL-07, PL-15)
func TestAttackPodFields(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	ed := editor(t, ns)
	volume := func(v corev1.VolumeSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: v}} }
	}
	mount := func(m corev1.VolumeMount) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			m.Name = "v"
			p.Spec.Volumes = []corev1.Volume{{Name: "v",
				VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{m}
		}
	}
	items := func(path string) []corev1.KeyToPath { return []corev1.KeyToPath{{Key: "k", Path: path}} }
	for field, rows := range map[string][]func(*corev1.Pod){
		"spec.hostAliases[0].ip": {func(p *corev1.Pod) {
			p.Spec.HostAliases = []corev1.HostAlias{{IP: "10.0.0.1\n6.6.6.6 api", Hostnames: []string{"a"}}}
		},
			func(p *corev1.Pod) { p.Spec.HostAliases = []corev1.HostAlias{{IP: "", Hostnames: []string{"a"}}} }},
		"spec.hostAliases[0].hostnames": {func(p *corev1.Pod) {
			p.Spec.HostAliases = []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"a\n6.6.6.6 api"}}}
		}},
		"spec.dnsConfig.nameservers[0]": {func(p *corev1.Pod) {
			p.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"10.0.0.1\nsearch evil"}}
		}},
		"spec.dnsConfig.searches[0]": {func(p *corev1.Pod) {
			p.Spec.DNSConfig = &corev1.PodDNSConfig{Searches: []string{"a\nnameserver 6.6.6.6"}}
		}},
		"spec.hostname": {func(p *corev1.Pod) { p.Spec.Hostname = "a\nb" },
			func(p *corev1.Pod) { p.Spec.Hostname = "../a" }},
		"spec.subdomain": {func(p *corev1.Pod) { p.Spec.Subdomain = "a\nb" }},
		"spec.containers[0].name": {func(p *corev1.Pod) { p.Spec.Containers[0].Name = "../../x" },
			func(p *corev1.Pod) { p.Spec.Containers[0].Name = "a/b" }},
		"metadata.name":        {func(p *corev1.Pod) { p.Name = "../x" }, func(p *corev1.Pod) { p.Name = ".." }},
		"spec.volumes[0].name": {func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "../x"}} }},
		"volumeMounts[0].subPath": {mount(corev1.VolumeMount{MountPath: "/v", SubPath: "../x"}),
			mount(corev1.VolumeMount{MountPath: "/v", SubPath: "a/../../x"}),
			mount(corev1.VolumeMount{MountPath: "/v", SubPath: "/etc"})},
		"volumeMounts[0].subPathExpr": {mount(corev1.VolumeMount{MountPath: "/v", SubPathExpr: "../$(X)"})},
		"volumeMounts[0].mountPath":   {mount(corev1.VolumeMount{MountPath: ""})},
		"spec.volumes[0].hostPath":    {volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/../etc"}}), volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}})},
		"spec.volumes[0].configMap.items[0].path": {
			volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Items: items("../x")}}),
			volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Items: items("/etc/x")}})},
		"spec.volumes[0].secret.items[0].path": {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", Items: items("a/../../x")}})},
		"spec.volumes[0].downwardAPI": {volume(corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "../x", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}})},
		"spec.volumes[0].projected": {volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "../x"}}}}})},
		"spec.volumes[0].nfs": {volume(corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "127.0.0.1",
			Path: "-o/x"}})},
		"spec.volumes[0].iscsi":      {volume(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "127.0.0.1", IQN: "iqn.2020-01.x:y"}})},
		"spec.volumes[0].csi":        {volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "../x"}})},
		"spec.volumes[0].flexVolume": {volume(corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "a/../../b"}})},
		"localhostProfile": {func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: "Localhost", LocalhostProfile: new("../../etc/passwd")}}
		}, func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: "Localhost", LocalhostProfile: new("/etc/passwd")}}
		}, func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: "Localhost", LocalhostProfile: new("a/../../../etc/passwd")}}
		}},
		"spec.containers[0].env[0].name": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A=B", Value: "x"}}
		}},
		"spec.containers[0].ports[0].hostPort": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 70000}}
		}},
		"spec.containers[0].image": {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "" },
			func(p *corev1.Pod) { p.Spec.Containers[0].Image = " x" }},
		"spec.containers[0].resources": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("-1")}
		}},
		"spec.securityContext.fsGroup": {func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(-1))}
		}},
		"spec.securityContext.sysctls[0].name": {func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "../../x", Value: "1"}}}
		}},
		"spec.activeDeadlineSeconds": {func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(-1)) }},
		"spec.containers[0].securityContext": {func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{ProcMount: new(corev1.UnmaskedProcMount)}
		}},
		"the integer value of priority": {func(p *corev1.Pod) {
			p.Spec.Priority = new(int32(2000001000))
		}},
		"serviceaccounts \"nobody\" not found": {func(p *corev1.Pod) { p.Spec.ServiceAccountName = "nobody" }},
		"RuntimeClass \"nothing\" not found": {func(p *corev1.Pod) {
			p.Spec.RuntimeClassName = new("nothing")
		}},
		"no PriorityClass with name nothing": {func(p *corev1.Pod) { p.Spec.PriorityClassName = "nothing" }},
		"spec.nodeName":                      {func(p *corev1.Pod) { p.Spec.NodeName = "../node" }},
		"metadata.labels": {func(p *corev1.Pod) {
			p.Labels = map[string]string{"a": "b\nc"}
		}},
		"metadata.annotations": {func(p *corev1.Pod) {
			p.Annotations = map[string]string{"a\nb": "c"}
		}},
		"spec.containers[0].terminationMessagePolicy": {func(p *corev1.Pod) {
			p.Spec.Containers[0].TerminationMessagePolicy = "../x"
		}},
	} {
		for i, change := range rows {
			p := pod("odd")
			change(p)
			_, err := ed.CoreV1().Pods(ns).Create(t.Context(), p, dry())
			if err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("%s (%d): %v", field, i, err)
			}
		}
	}
}
