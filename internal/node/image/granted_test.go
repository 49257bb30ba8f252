// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/pullrecord"
)

// TestPullSecretsAreVerified proves RS-12: an image that the pod of one namespace pulled is for others that its registry lets in, also after
// a restart; one that nobody pulled is for all.
func TestPullSecretsAreVerified(t *testing.T) {
	const private, public = "r.example/private:1", "r.example/public:1"
	dir := t.TempDir()
	serve := func() *world {
		t.Helper()
		records, err := pullrecord.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		w := start(t, Config{Records: records, PullSecrets: func(_ context.Context, pod *corev1.Pod) (found []*corev1.Secret, _ []string, _ error) {
			for _, s := range pod.Spec.ImagePullSecrets {
				user, uid, _ := strings.Cut(s.Name, "-")
				found = append(found, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: s.Name, UID: types.UID(pod.Namespace + uid)},
					Type: corev1.SecretTypeDockerConfigJson,
					Data: map[string][]byte{".dockerconfigjson": fmt.Appendf(nil, `{"auths":{"r.example":{"username":%q,"password":"p"}}}`, user)}})
			}
			return found, nil, nil
		}}, "preloaded:1")
		w.script = func(_ context.Context, image, user string) error {
			if image == private && user != "ann" {
				return status.Error(codes.Unknown, "401 Unauthorized")
			}
			return nil
		}
		return w
	}
	pod := func(ns string, secrets ...string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: ns, UID: "u"}}
		for _, s := range secrets {
			p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: s})
		}
		return p
	}
	w := serve()
	ensure := func(what string, p *corev1.Pod, image string, policy corev1.PullPolicy, reason string, pulls int) {
		t.Helper()
		before := len(w.pulled())
		_, err := w.Ensure(t.Context(), p, container(image, policy))
		e := (*Error)(nil)
		if reason == "" && err != nil || reason != "" && (!errors.As(err, &e) || e.Reason != reason) {
			t.Errorf("%s: %v, want %q", what, err, reason)
		}
		if got := len(w.pulled()) - before; got != pulls {
			t.Errorf("%s: %d pulls, want %d", what, got, pulls)
		}
	}
	ensure("nobody's image", pod("b"), "preloaded:1", corev1.PullNever, "", 0)
	ensure("without a login", pod("b"), private, corev1.PullIfNotPresent, ErrImagePull, 1)
	ensure("with one", pod("a", "ann-1"), private, corev1.PullIfNotPresent, "", 1)
	others := func() {
		t.Helper()
		ensure("the same secret", pod("a", "ann-1"), private, corev1.PullIfNotPresent, "", 0)
		ensure("the same secret, never pulled", pod("a", "ann-1"), private, corev1.PullNever, "", 0)
		ensure("no secret", pod("b"), private, corev1.PullIfNotPresent, ErrImagePull, 1)
		ensure("no secret, never pulled", pod("b"), private, corev1.PullNever, ErrImageNeverPull, 0)
		ensure("another's login", pod("b", "bob-1"), private, corev1.PullIfNotPresent, ErrImagePull, 1)
	}
	others()
	w = serve() // on the same folder; the image service has to be told again what is there
	w.present[private] = true
	others()
	ensure("the same login in another namespace", pod("c", "ann-1"), private, corev1.PullNever, "", 0)
	ensure("a public image", pod("a"), public, corev1.PullIfNotPresent, "", 1)
	ensure("which is for all", pod("b"), public, corev1.PullNever, "", 0)
	ensure("also with a login of no use", pod("b", "bob-1"), public, corev1.PullNever, "", 0)
}
