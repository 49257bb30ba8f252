// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/test/images"
)

func from(image string, policy corev1.PullPolicy) corev1.Container {
	return corev1.Container{Image: image, ImagePullPolicy: policy, Args: []string{"sleep"}}
}

// TestImageErrors: an image that cannot be had is shown with Kubernetes' reason and words a user can act on (PL-03, PL-15).
func TestImageErrors(t *testing.T) {
	t.Parallel()
	s := shared(t)
	reg := s.Registry(t)
	down := ClosedPort(t)
	s.TrustRegistry(t, down)
	for _, c := range []struct {
		name    string
		main    corev1.Container
		first   string // reason at first
		then    string // and after the first try; empty: stays
		message []string
	}{
		{"missing", from(reg.Host+"/no/such:1", corev1.PullIfNotPresent), "ErrImagePull", "ImagePullBackOff", []string{reg.Host + "/no/such:1", "not found"}},
		{"registry-down", from(down+"/any:1", corev1.PullIfNotPresent), "ErrImagePull", "ImagePullBackOff", []string{"connection refused"}},
		{"never", from("wherry.test/absent:1", corev1.PullNever), "ErrImageNeverPull", "", []string{"wherry.test/absent:1", "is not present with pull policy of Never"}},
		{"invalid", from("Not/A:Name!", corev1.PullIfNotPresent), "InvalidImageName", "", []string{"Not/A:Name!"}},
	} {
		t.Run("PL-03 PL-15 "+c.name, func(t *testing.T) {
			t.Parallel()
			s := s.With(t)
			s.Create(NewPod(c.name, c.main))
			p := s.Wait(c.name, "wait: "+c.first, func(p *corev1.Pod) bool {
				main := Status(p, "main")
				return main != nil && main.State.Waiting != nil && slices.Contains([]string{c.first, c.then}, main.State.Waiting.Reason)
			})
			for _, word := range c.message {
				if message := Status(p, "main").State.Waiting.Message; !strings.Contains(message, word) {
					t.Errorf("its message lacks %q: %s", word, message)
				}
			}
			shown := c.first
			if c.then != "" {
				shown = c.then
				status := s.WaitWaiting(c.name, "main", c.then)
				if want := `Back-off pulling image "` + c.main.Image + `": ` + c.first + ": "; !strings.HasPrefix(status.State.Waiting.Message, want) {
					t.Errorf("%s: its message is %s", c.then, status.State.Waiting.Message)
				}
				s.WaitEvent(c.name, "Failed", "Failed to pull image")
				s.WaitEvent(c.name, "BackOff", "Back-off pulling image")
			}
			s.WaitEvent(c.name, "Failed", "Error: "+shown)
			if c.then == "" {
				s.Kubectl("get", "pod", c.name).Has("0/1", shown)
			} else if row := s.Kubectl("get", "pod", c.name).Out; !strings.Contains(row, "ImagePullBackOff") && !strings.Contains(row, "ErrImagePull") {
				t.Errorf("kubectl get pod printed %s", row)
			}
			if p := s.Get(c.name); p.Status.Phase != corev1.PodPending {
				t.Errorf("phase %s", p.Status.Phase)
			}
		})
	}
}

// TestPull: an image of a registry is pulled by its policy, and a pod that failed to get one runs when it is there (PL-03).
func TestPull(t *testing.T) {
	t.Parallel()
	s := shared(t)
	reg := s.Registry(t)

	t.Run("PL-03 arrives later", func(t *testing.T) {
		t.Parallel()
		s := s.With(t)
		s.Create(NewPod("later", from(reg.Host+"/later:1", corev1.PullIfNotPresent)))
		s.WaitWaiting("later", "main", "ImagePullBackOff")
		reg.Push(s.Server, images.ToolRef, "later:1")
		p := s.WaitReady("later")
		if c := Status(p, "main"); c.RestartCount != 0 || !strings.Contains(c.ImageID, "@sha256:") {
			t.Errorf("restarts %d, image id %s", c.RestartCount, c.ImageID)
		}
		s.WaitEvent("later", "Pulled", "Successfully pulled image")
	})
	t.Run("PL-03 policies", func(t *testing.T) {
		t.Parallel()
		s := s.With(t)
		ref := reg.Push(s.Server, images.ToolRef, "policies:1")
		asked := func() (n int) {
			for _, r := range reg.Requests() {
				if strings.Contains(r, "/v2/policies/manifests/1") {
					n++
				}
			}
			return n
		}
		run := func(name string, policy corev1.PullPolicy) (requests int) {
			before := asked()
			s.Create(NewPod(name, from(ref, policy)))
			s.WaitReady(name)
			return asked() - before
		}
		pushes := asked()
		if n := run("absent", corev1.PullIfNotPresent); n == 0 {
			t.Errorf("the image was not asked for (%d requests of the push)", pushes)
		}
		if n := run("present", corev1.PullIfNotPresent); n != 0 {
			t.Errorf("IfNotPresent asked %d times for an image that is there", n)
		}
		s.WaitEvent("present", "Pulled", "already present on machine")
		if n := run("always", corev1.PullAlways); n == 0 {
			t.Error("Always did not ask")
		}
		if n := run("never", corev1.PullNever); n != 0 {
			t.Errorf("Never asked %d times", n)
		}
	})
	t.Run("PL-03 pull secret", func(t *testing.T) {
		t.Parallel()
		s := s.With(t)
		reg := s.Registry(t)
		reg.Lock("ann", "secret word")
		ref := reg.Push(s.Server, images.ToolRef, "private/tool:1")
		s.Create(NewPod("without", from(ref, corev1.PullIfNotPresent)))
		c := s.WaitWaiting("without", "main", "ImagePullBackOff")
		if msg := c.State.Waiting.Message; !strings.Contains(msg, "asks for credentials: add an imagePullSecret for it") {
			t.Errorf("its message does not say what to do: %s", msg)
		}
		s.Kubectl("create", "secret", "docker-registry", "pull", "--docker-server="+reg.Host, "--docker-username=ann", "--docker-password=secret word")
		pod := NewPod("with", from(ref, corev1.PullIfNotPresent))
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
		s.Create(pod)
		s.WaitReady("with")
		if !slices.Contains(reg.Requests(), "GET /v2/private/tool/manifests/1") && !slices.Contains(reg.Requests(), "HEAD /v2/private/tool/manifests/1") {
			t.Errorf("requests: %v", reg.Requests())
		}
	})
}

// TestCommandErrors: a command that cannot be run is shown with the reason StartError, its exit code 128 and what is wrong
// (PL-15).
func TestCommandErrors(t *testing.T) {
	t.Parallel()
	s := shared(t)
	main := Tool()
	main.Command = []string{"/no/such/program"}
	s.Create(Never("nocommand", main))
	p := s.WaitPhase("nocommand", corev1.PodFailed)
	end := Ended(p, "main")
	if end.Reason != "StartError" || end.ExitCode != 128 || !strings.Contains(end.Message, "/no/such/program") || !strings.Contains(end.Message, "no such file") {
		t.Errorf("it ended %+v", end)
	}
	s.WaitEvent("nocommand", "Failed", "/no/such/program")
	s.Kubectl("get", "pod", "nocommand").Has("0/1", "StartError")
}
