// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// DC-03 DC-05 DC-13 EC-05 EC-06 EC-07 EC-09: what cannot be is refused with one clear message, before the connection is
// upgraded, and at once.
// ATTACK B24.
func TestDebugRefusals(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	ended := n.pod(t, ns, pod("ended"))
	n.status(t, ended, func(s *corev1.PodStatus) { s.Phase = corev1.PodFailed })
	crashing := n.pod(t, ns, pod("crashing"))
	n.status(t, crashing, func(s *corev1.PodStatus) {
		s.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	})
	createPod(t, c, ns, pod("homeless"))
	static := pod("static")
	static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	static.Spec.NodeName = n.name
	createPod(t, c, ns, static)
	leaving := n.pod(t, ns, pod("leaving"))
	if err := c.CoreV1().Pods(ns).Delete(t.Context(), leaving.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	const name, image = "ephemeralContainerName", "ephemeralContainerImage"
	for _, tc := range []struct {
		what, pod, query string
		code             int32
		reason           metav1.StatusReason
		words, exit      string
	}{
		{"DC-03 name without image", "p", name + "=a", 400, "BadRequest", "must both be given, or neither", ""},
		{"DC-03 image without name", "p", image + "=tools:1", 400, "BadRequest", "must both be given, or neither", ""},
		{"DC-03 empty name", "p", name + "=&" + image + "=tools:1", 400, "BadRequest", "must both be given, or neither",
			""},
		{"DC-03 option without either", "p", "ephemeralContainerTTL=1m", 400, "BadRequest",
			"must both be given, or neither", ""},
		{"and image exec", "p", name + "=a&" + image + "=tools:1&image=x", 400, "BadRequest", "exclude each other", ""},
		{"another container", "p", name + "=a&" + image + "=tools:1&container=main", 400, "BadRequest",
			"leave the parameter container out", ""},
		{"DC-14 profile", "p", name + "=a&" + image + "=tools:1&ephemeralContainerProfile=root", 400, "BadRequest",
			"choose one of general, baseline", ""},
		{"pull policy", "p", name + "=a&" + image + "=tools:1&ephemeralContainerPullPolicy=Maybe", 400, "BadRequest",
			"Always, IfNotPresent, Never", ""},
		{"time", "p", name + "=a&" + image + "=tools:1&ephemeralContainerTTL=soon", 400, "BadRequest", "not a duration",
			""},
		{"a long word", "p", name + "=a&" + image + "=tools:1&ephemeralContainerRequest=" + strings.Repeat("x", 65),
			400, "BadRequest", "at most 64", ""},
		{"a long name of an image", "p", name + "=a&" + image + "=" + strings.Repeat("x", 1025), 400, "BadRequest",
			image + " has 1025 bytes: the name of an image may have at most 1024", ""},
		{"image exec of a long name", "p", "image=" + strings.Repeat("x", 1025), 400, "BadRequest",
			"image has 1025 bytes: the name of an image may have at most 1024", ""},
		{"no time", "p", name + "=a&" + image + "=tools:1&ephemeralContainerTTL=0s", 400, "BadRequest",
			"not a duration above zero", ""},
		{"no pod", "none", name + "=a&" + image + "=tools:1", 404, "NotFound", `pods "none" not found`, ""},
		{"bad name", "p", name + "=A_b&" + image + "=tools:1", 422, "Invalid", "spec.ephemeralContainers[0].name", ""},
		{"EC-07 unknown target", "p", name + "=a&" + image + "=tools:1&ephemeralContainerTarget=nobody", 422, "Invalid",
			"targetContainerName", ""},
		{"PID-07 target that does not run", "crashing", name + "=a&" + image + "=tools:1&ephemeralContainerTarget=main",
			409, "Conflict", `target container "main" of pod crashing is not running (CrashLoopBackOff)`, ""},
		{"DC-05 name of a main container", "p", name + "=main&" + image + "=tools:1", 409, "AlreadyExists",
			`container name "main" is taken by spec.containers[0]`, ""},
		{"ended", "ended", name + "=a&" + image + "=tools:1", 409, "Conflict", "has ended (Failed)", ""},
		{"deleted", "leaving", name + "=a&" + image + "=tools:1", 409, "Conflict", "is being deleted", ""},
		{"not on a node", "homeless", name + "=a&" + image + "=tools:1", 409, "Conflict",
			"does not have a host assigned", ""},
		{"EC-09 static", "static", name + "=a&" + image + "=tools:1", 409, "Conflict", "is a static pod", ""},
		{"no such image", "p", name + "=pull&" + image + "=missing:1", 400, "ErrImagePull",
			`debug container "pull" of pod p cannot start: ErrImagePull: no such host`, ""},
		{"runAsNonRoot", "p", name + "=config&" + image + "=rooty:1", 400, "CreateContainerConfigError",
			"image will run as root", ""},
		{"DC-13 image not allowed", "p", name + "=unlisted&" + image + "=unlisted:1", 400, "ImageNotAllowed",
			"debug images of example.com only", ""},
		{"no shell", "p", name + "=shellless&" + image + "=shellless:1", 400, "StartError", "executable file not found",
			"127"},
		{"no command", "p", name + "=locked&" + image + "=locked:1", 400, "StartError", "permission denied", "126"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			_, err := execInto(t, adminConfig(t), "websocket", ns, tc.pod, "stdout=true&"+tc.query)
			status := statusOf(t, err)
			if status.Code != tc.code || status.Reason != tc.reason || !strings.Contains(status.Message, tc.words) {
				t.Errorf("%d %s %q", status.Code, status.Reason, status.Message)
			}
			exit := ""
			if status.Details != nil && len(status.Details.Causes) > 0 &&
				status.Details.Causes[0].Type == debugask.CauseExitCode {
				exit = status.Details.Causes[0].Message
			}
			if exit != tc.exit {
				t.Errorf("exit code %q in the details", exit)
			}
			if len(podNow(t, c, ns, "p").Spec.EphemeralContainers) > 0 && tc.code == 400 && tc.reason != "BadRequest" {
				return // the name is in use now
			}
			if _, err := execInto(t, adminConfig(t), "spdy", ns, tc.pod, "stdout=true&"+tc.query); err == nil ||
				!strings.Contains(err.Error(), tc.words) {
				t.Errorf("SPDY: %v", err)
			}
		})
	}
	t.Run("no streams", func(t *testing.T) {
		_, err := execInto(t, adminConfig(t), "websocket", ns, "p", strings.TrimPrefix(session, "stdout=true&"))
		if s := statusOf(t, err); s.Code != 400 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("one that could not start leaves its record and is stopped", func(t *testing.T) {
		runs := recordsOf(t, ns, "p")
		if !slices.ContainsFunc(runs, func(r debugrun.DebugRun) bool { return r.Spec.Container == "pull" }) {
			t.Errorf("no record of it among %d", len(runs))
		}
		stopped(t, c, ns, "p", "pull")
		if _, err := execInto(t, adminConfig(t), "spdy", ns, "p",
			strings.Replace(session, "=debug", "=pull", 1)); err != nil {
			t.Errorf("its name cannot be used again: %v", err)
		}
	})
	t.Run("DC-15 a container that crashes is no target unless asked for", func(t *testing.T) {
		if _, err := execInto(t, adminConfig(t), "spdy", ns, "crashing", session); err != nil {
			t.Fatal(err)
		}
		if e := podNow(t, c, ns, "crashing").Spec.EphemeralContainers[0]; e.TargetContainerName != "" {
			t.Errorf("target %q", e.TargetContainerName)
		}
	})
}

// DC-03 IX-01: who asks for a session without asking for streams is refused, and nothing is made.
func TestDebugNeedsUpgrade(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	for _, query := range []string{session, "stdout=true&image=tools:1&command=x", "stdout=true&command=x"} {
		data, err := c.CoreV1().RESTClient().Post().RequestURI("/api/v1/namespaces/" + ns + "/pods/p/exec?" +
			query).DoRaw(t.Context())
		if !apierrors.IsBadRequest(err) || !strings.Contains(string(data), "Upgrade request required") {
			t.Errorf("%s, %v", data, err)
		}
	}
	if p := podNow(t, c, ns, "p"); len(p.Spec.EphemeralContainers) > 0 || conditionOf(p) != nil ||
		len(recordsOf(t, ns, "p")) > 0 {
		t.Error("something was made all the same")
	}
}

// EC-20 IX-07: who has no right to it is refused before anything is made.
func TestDebugForbidden(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	ns := namespace(t, c)
	n.pod(t, ns, pod("p"))
	jane := adminConfig(t)
	jane.TLSClientConfig.CertData, jane.TLSClientConfig.KeyData, jane.BearerToken = nil, nil, "jane-token"
	for _, query := range []string{session, "stdout=true&image=tools:1&command=x"} {
		_, err := execInto(t, jane, "websocket", ns, "p", query)
		if s := statusOf(t, err); s.Code != http.StatusForbidden {
			t.Errorf("%+v", s)
		}
		if _, err := execInto(t, jane, "spdy", ns, "p", query); err == nil ||
			!strings.Contains(err.Error(), "forbidden") {
			t.Errorf("SPDY: %v", err)
		}
	}
	if p := podNow(t, c, ns, "p"); len(p.Spec.EphemeralContainers) > 0 || conditionOf(p) != nil ||
		len(recordsOf(t, ns, "p")) > 0 {
		t.Error("something was made all the same")
	}
}
