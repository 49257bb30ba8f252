// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPolicies: EC-21 IX-07 the commands of docs/guides/policies.md: Pod Security and image policies hold for pods, debug containers
// and image exec alike, and say what to change.
func TestPolicies(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ns := k.Namespace
	policy := func(name, spec string) {
		t.Helper()
		k.KubectlIn("{apiVersion: policy.wherry.dev/v1, kind: ImagePolicy, metadata: {name: "+name+"}, spec: "+spec+"}", "apply", "-f", "-")
		t.Cleanup(func() { k.Kubectl("delete", "imagepolicy", name) })
	}
	k.up("metadata: {name: web}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	web := k.Get("web").Spec.Containers[0].Image

	t.Run("EC-21 image policy", func(t *testing.T) {
		k := &kit{Space: k.With(t), t: t}
		policy(ns, `{namespaces: [`+ns+`], allow: ["`+web+`"], deny: ["registry.example.com/old/*"]}`)
		k.KubectlFails("run", "other", "--image=nginx:1").Says(`image policy "` + ns + `": container "other" of pod "other": image "nginx:1" is not allowed; allowed are ` + web)
		k.KubectlFails("debug", "web", "--image=nginx:1").Says(`ephemeral container "debugger-`, "is not allowed")
		k.wherry(nil, "debug", "web", "--", "true").exits(1).Says(`image "wherry.dev/toolbox" is not allowed`)
		k.wherry(nil, "exec", "-m", "nginx:1", "web", "--", "true").exits(1).Says(`ephemeral container "image-exec" of pod "web": image "nginx:1" is not allowed`)
		k.Kubectl("get", "imagepolicies", ns).Has("NAMESPACES", "registry.example.com/old/*", "Enforce")
		k.Kubectl("explain", "imagepolicy.spec").Has("requireDigest", "namespaceSelector")
		if p := k.Get("web"); len(p.Spec.EphemeralContainers) > 0 {
			t.Errorf("there is a debug container all the same: %v", p.Spec.EphemeralContainers)
		}
		k.KubectlIn("{apiVersion: policy.wherry.dev/v1, kind: ImagePolicy, metadata: {name: "+ns+"}, spec: {namespaces: ["+ns+`], allow: ["`+web+`", "wherry.dev/toolbox*"]}}`, "apply", "-f", "-")
		k.wherry(nil, "debug", "web", "--", "true").exits(0)
		k.wherry(nil, "exec", "-m", "wherry.dev/toolbox", "web", "--", "ls", "/c/c/bin").exits(0)
	})
	t.Run("EC-21 Pod Security", func(t *testing.T) {
		k := &kit{Space: k.With(t), t: t}
		k.Kubectl("label", "namespace", ns, "pod-security.kubernetes.io/enforce=baseline", "pod-security.kubernetes.io/warn=restricted")
		k.Kubectl("label", "--dry-run=server", "--overwrite", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted").
			Says(`existing pods in namespace "`+ns+`" violate the new PodSecurity enforce level "restricted:latest"`, "web")
		k.KubectlFails("run", "root", "--image="+web, "--privileged").Says(`violates PodSecurity "baseline:latest": privileged (container "root"`)
		k.wherry(nil, "debug", "web", "--", "true").exits(1).Says("non-default capabilities", "SYS_PTRACE")
		k.wherry(nil, "debug", "--profile", "baseline", "web", "--", "true").exits(0)
		k.wherry(nil, "exec", "-m", "wherry.dev/toolbox", "web", "--", "true").exits(0)
	})
}

// TestImagePolicyIDs: RS-12 an image that is called by its id, or the beginning of it, is held to what the node calls it: in pods, debug
// containers and image exec.
// ATTACK A23.
func TestImagePolicyIDs(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ns := k.Namespace
	web := k.up("metadata: {name: web}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	name := web.Spec.Containers[0].Image
	_, digits, ok := strings.Cut(web.Status.ContainerStatuses[0].ImageID, "sha256:")
	if !ok {
		t.Fatalf("the image's id is %q", web.Status.ContainerStatuses[0].ImageID)
	}
	policy := func(spec string) {
		t.Helper()
		k.KubectlIn("{apiVersion: policy.wherry.dev/v1, kind: ImagePolicy, metadata: {name: "+ns+"}, spec: {namespaces: ["+ns+"], "+spec+"}}", "apply", "-f", "-")
	}
	t.Cleanup(func() { k.Kubectl("delete", "imagepolicy", ns) })
	policy(`deny: ["` + name + `"], allow: ["docker.io/**"]`)
	for i, id := range []string{"sha256:" + digits, "sha256:" + digits[:12]} {
		pod := fmt.Sprintf("by-id-%d", i)
		k.KubectlFails("run", pod, "--image="+id, "--image-pull-policy=Never").Says(`image id "`+id+`" stands for image`, name)
		k.KubectlFails("debug", "web", "--image="+id).Says(`image id "` + id + `" stands for`)
		k.wherry(nil, "exec", "-m", id, "web", "--", "true").exits(1).Says(`image id "` + id + `" stands for`)
	}
	unknown := "sha256:" + strings.Repeat("0", 64)
	k.KubectlFails("run", "unknown", "--image="+unknown).Says("no node knows a name of such an image")

	policy(`deny: ["evil.test/**"]`)
	k.Kubectl("run", "by-id", "--image=sha256:"+digits, "--image-pull-policy=Never", "--command", "--", "true")
	k.Wait("by-id", "has run", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting == nil
	})
	k.wherry(nil, "exec", "-m", "sha256:"+digits[:12], "web", "--", "true").exits(0)
}

// TestRestricted: EC-21 IX-07 under the strictest standard there is still a way to look into a pod, without root.
// ATTACK A36.
func TestRestricted(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.Kubectl("label", "namespace", k.Namespace, "pod-security.kubernetes.io/enforce=restricted")
	k.up(`
metadata: {name: web}
spec:
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
  - {name: c, command: [sh, -c, IDLE], securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
`)
	k.wherry(nil, "debug", "web", "--", "id", "-u").exits(1).Says(`violates PodSecurity "restricted:latest"`)
	k.wherry(nil, "debug", "--profile", "restricted", "web", "--", "id", "-u").exits(0).Is("1000")
	k.wherry(nil, "exec", "-m", "wherry.dev/toolbox", "web", "--", "id", "-u").exits(0).Is("1000")
}

// TestClasses: PL-13 PL-15 the rest of docs/guides/policies.md: priorities, and runtime classes whose handler the runtime has or has not.
func TestClasses(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	name := func(of string) string { return of + "-" + k.Namespace }
	k.Kubectl("create", "priorityclass", name("important"), "--value=1000", "--description=the shop itself")
	t.Cleanup(func() { k.Kubectl("delete", "priorityclass", name("important")) })
	k.Kubectl("get", "priorityclasses").Has("system-node-critical", "2000001000", name("important"))
	p := k.up("metadata: {name: first}\nspec: {priorityClassName: " + name("important") + ", containers: [{name: c, command: [sh, -c, IDLE]}]}")
	if p.Spec.Priority == nil || *p.Spec.Priority != 1000 {
		t.Errorf("priority %v", p.Spec.Priority)
	}
	class := func(of, handler string) {
		k.KubectlIn("{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: "+name(of)+"}, handler: "+handler+", overhead: {podFixed: {cpu: 100m, memory: 16Mi}}}", "apply", "-f", "-")
		t.Cleanup(func() { k.Kubectl("delete", "runtimeclass", name(of)) })
	}
	class("plain", "runc")
	class("boxed", "no-such-runtime")
	t.Run("PL-15 a handler that the runtime has, with overhead", func(t *testing.T) {
		k := &kit{Space: k.With(t), t: t}
		p := k.up("metadata: {name: plain}\nspec: {runtimeClassName: " + name("plain") + ", containers: [{name: c, command: [sh, -c, IDLE], resources: {requests: {cpu: 150m}, limits: {cpu: 400m, memory: 48Mi}}}]}")
		if o := p.Spec.Overhead.Memory().String(); o != "16Mi" {
			t.Errorf("overhead %s", o)
		}
		needV1(t)
		for file, want := range map[string]string{"cpu.shares": "256", "cpu.cfs_quota_us": "50000"} {
			if got := k.value(k.cgroupOf("cpu", p), file); got != want {
				t.Errorf("%s of the pod is %s, want %s", file, got, want)
			}
		}
		if got := k.value(k.cgroupOf("memory", p), "memory.limit_in_bytes"); got != "67108864" {
			t.Errorf("the pod's memory limit is %s, want 64Mi", got)
		}
	})
	t.Run("PL-15 a handler that it has not", func(t *testing.T) {
		k := &kit{Space: k.With(t), t: t}
		k.pod("metadata: {name: boxed}\nspec: {runtimeClassName: " + name("boxed") + ", containers: [{name: c, command: [sh, -c, IDLE]}]}")
		k.Wait("boxed", "says why", func(p *corev1.Pod) bool {
			for _, s := range p.Status.ContainerStatuses {
				if s.State.Waiting != nil && strings.Contains(s.State.Waiting.Message, `handler "no-such-runtime"`) {
					return true
				}
			}
			return false
		})
		k.Kubectl("get", "pod", "boxed", "-o", "jsonpath={.status.containerStatuses[0].state.waiting.message}").Has(`runtime class "` + name("boxed") + `", handler "no-such-runtime"`)
		k.Kubectl("delete", "pod", "boxed")
	})
	t.Run("a class that is not there", func(t *testing.T) {
		p := NewPod("nowhere", Sh(Idle))
		p.Spec.RuntimeClassName = new("nobodys")
		if _, err := k.Client.CoreV1().Pods(k.Namespace).Create(t.Context(), p, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), `RuntimeClass "nobodys" not found`) {
			t.Errorf("%v", err)
		}
	})
}
