// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/test/images"
)

// RS-12: a private image that one namespace's pod pulled is not for a pod of another without the login, whatever its pull policy, by its name
// or by its id, before and after a restart of the server; for one with the login, and for imported images, the registry is not asked.
// ATTACK A24.
func TestPrivateImages(t *testing.T) {
	t.Parallel()
	srv := own(t)
	a, b, c := srv.Space(t), srv.Space(t), srv.Space(t)
	reg := srv.Registry(t)
	private := reg.Push(srv, images.ToolRef, "team/tool:1")
	reg.Lock("ann", "secret word")
	login := func(s *Space) {
		s.Kubectl("create", "secret", "docker-registry", "pull", "--docker-server="+reg.Host, "--docker-username=ann", "--docker-password=secret word")
	}
	login(a)
	login(c)
	runs := func(s *Space, name string, policy corev1.PullPolicy) {
		t.Helper()
		p := NewPod(name, from(private, policy))
		p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
		s.Create(p)
		s.WaitReady(name)
	}
	refused := func(name string) {
		t.Helper()
		b.Create(NewPod(name+"-asks", from(private, corev1.PullIfNotPresent)))
		if w := b.WaitWaiting(name+"-asks", "main", "ImagePullBackOff"); !strings.Contains(w.State.Waiting.Message, "asks for credentials") {
			t.Errorf("without the login: %q", w.State.Waiting.Message)
		}
		b.Create(NewPod(name+"-never", from(private, corev1.PullNever)))
		if w := b.WaitWaiting(name+"-never", "main", "ErrImageNeverPull"); !strings.Contains(w.State.Waiting.Message, "is present on the machine but cannot be accessed by the pod") {
			t.Errorf("without the login, never pulled: %q", w.State.Waiting.Message)
		}
	}
	runs(a, "first", corev1.PullIfNotPresent)
	id := srv.imageID(t, private)
	byID := func(name string) {
		t.Helper()
		for _, policy := range []corev1.PullPolicy{corev1.PullNever, corev1.PullIfNotPresent} { // ids are not pulled
			pod := name + "-by-id-" + strings.ToLower(string(policy))
			b.Create(NewPod(pod, from(id, policy)))
			if w := b.WaitWaiting(pod, "main", "ErrImageNeverPull"); !strings.Contains(w.State.Waiting.Message, "is present on the machine but cannot be accessed by the pod") {
				t.Errorf("without the login, by id, %s: %q", policy, w.State.Waiting.Message)
			}
		}
	}
	refused("before")
	byID("before")
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := srv.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	refused("after")
	byID("after")
	runs(a, "second", corev1.PullNever)
	runs(c, "same-login", corev1.PullNever)
	b.Create(NewPod("imported", from(images.ToolRef, corev1.PullNever)))
	b.WaitReady("imported")
}

// imageID is the id by which the runtime knows an image.
func (s *Server) imageID(t *testing.T, image string) string {
	t.Helper()
	client, err := s.CRI(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	status, err := client.Images.ImageStatus(t.Context(), &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: image}})
	if err != nil || status.Image == nil || !strings.HasPrefix(status.Image.Id, "sha256:") {
		t.Fatalf("image %s in the runtime: %v, %v", image, status, err)
	}
	return status.Image.Id
}
