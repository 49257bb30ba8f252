// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestDebugProfilesTakeARight proves RS-11: the role debug brings no container into a pod that reaches the node,
// whatever the request says; debug-privileged does, and a right to one profile is one to that alone. ATTACK A2.
func TestDebugProfilesTakeARight(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	role := func(user, role string) string {
		bindTo(t, c, ns, user+"-"+ns, rbacv1.RoleRef{Kind: "ClusterRole", Name: role})
		return user + "-" + ns
	}
	deb, priv := role("deb", "debug"), role("priv", "debug-privileged")
	net := grant(t, c, ns, "net-"+ns, "get pods", "patch,update pods/ephemeralcontainers",
		"use debugprofiles.debug.wherry.dev netadmin")
	boundPod(t, c, ns, pod("web"))

	add := func(names ...corev1.Capability) *corev1.SecurityContext {
		return &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: names}}
	}
	privileged := &corev1.SecurityContext{Privileged: new(true)}
	patch := func(user string, sc *corev1.SecurityContext) error { // as kubectl debug does it
		t.Helper()
		body, err := json.Marshal(corev1.Pod{Spec: corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger", Image: "tools:1",
				SecurityContext: sc}}}}})
		if err != nil {
			t.Fatal(err)
		}
		var spec map[string]any
		if err := json.Unmarshal(body, &spec); err != nil {
			t.Fatal(err)
		}
		delete(spec, "status")
		delete(spec, "metadata")
		delete(spec["spec"].(map[string]any), "containers")
		body, _ = json.Marshal(spec)
		_, err = clientOf(t, person(t, shared.srv, user)).CoreV1().Pods(ns).Patch(t.Context(), "web",
			types.StrategicMergePatchType, body, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}},
			"ephemeralcontainers")
		return err
	}
	sysadmin := `user "` + deb +
		`" cannot use resource "debugprofiles" named "sysadmin" in API group "debug.wherry.dev" in the namespace "` +
		ns + `"`
	forbidden(t, "debug, privileged", patch(deb, privileged),
		`ephemeral container "debugger" has the privileges of the debug profile sysadmin`, sysadmin, "debug-privileged")
	forbidden(t, "debug, one capability", patch(deb, add("SYS_ADMIN")), sysadmin)
	forbidden(t, "debug, netadmin", patch(deb, add("NET_ADMIN", "NET_RAW")), `named "netadmin"`)
	fine(t, "debug, general", patch(deb, add("SYS_PTRACE")))
	fine(t, "debug, baseline", patch(deb, nil))
	fine(t, "the right to one profile", patch(net, add("NET_ADMIN", "NET_RAW")))
	forbidden(t, "which is none to another", patch(net, privileged), `named "sysadmin"`)
	fine(t, "debug-privileged, privileged", patch(priv, privileged))
	fine(t, "debug-privileged, netadmin", patch(priv, add("NET_ADMIN")))
	fine(t, "debug-privileged, general", patch(priv, add("SYS_PTRACE")))

	for _, profile := range []string{"sysadmin", "netadmin"} { // as wherry debug does it
		_, err := execInto(t, person(t, shared.srv, deb), "websocket", ns, "web",
			"stdout=true&ephemeralContainerName=debug&ephemeralContainerImage=tools:1&ephemeralContainerProfile="+
				profile)
		if s := statusOf(t, err); s.Code != 403 || !strings.Contains(s.Message, `named "`+profile+`"`) {
			t.Errorf("a session with profile %s: %+v", profile, s)
		}
	}
	if now := podNow(t, c, ns, "web"); len(now.Spec.EphemeralContainers) > 0 {
		t.Errorf("there are debug containers: %+v", now.Spec.EphemeralContainers)
	}
}
