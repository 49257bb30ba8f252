// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/api/imagepolicy"
)

// TestAttackImagePolicies: an image policy is not walked around by another spelling of the same image, nor by a name
// that looks like one that is allowed. (ATTACK A22; RS-12)
func TestAttackImagePolicies(t *testing.T) {
	c := client(t)
	denied, allowed := namespace(t, c), namespace(t, c)
	newImagePolicy(t, denied, imagepolicy.ImagePolicySpec{Namespaces: []string{denied},
		Deny: []string{"evil.test/**", "docker.io/**"}})
	newImagePolicy(t, allowed, imagepolicy.ImagePolicySpec{Namespaces: []string{allowed},
		Allow: []string{"good.test/tools/**", "wherry.dev/toolbox"}})
	digest := "@sha256:" + strings.Repeat("a", 64)
	try := func(ns, image string) error {
		p := pod("p")
		p.Spec.Containers[0].Image = image
		_, err := c.CoreV1().Pods(ns).Create(context.Background(), p, dry())
		return err
	}
	for ns, image := range map[string]string{denied: "good.test/tools/x:1", allowed: "good.test/tools/x:1"} {
		if err := try(ns, image); err != nil {
			t.Errorf("%s: %v", image, err)
		}
	}
	rows := map[string][]string{
		denied: {
			"evil.test/evil:1", "evil.test/evil", "evil.test/a/b/c", "EVIL.test/evil:1", "Evil.Test/evil:1",
			"evil.test:443/evil:1", "EVIL.TEST:443/evil", "evil.test/evil" + digest, "evil.test/evil:1" + digest,
			"evil.test:443/evil:1" + digest, "evil.test./evil:1", "evil.test//evil:1", "evil.test/./evil:1",
			"evil.test/x/../evil:1", "good.test/../evil.test/evil", "evil.test%2Fevil:1", "evil.test/evil%3A1",
			"evil.test\\evil:1", " evil.test/evil:1", "evil.test/evil:1 ", "evil.test/evil:1\n", "evil.test/evil:1%0a",
			"evil.test/evil:1@", "evil.test/evil@1", "https://evil.test/evil:1", "docker://evil.test/evil:1",
			"user@evil.test/evil:1", "good.test@evil.test/evil:1", "evil.test:0443/evil:1", "evil.test:/evil:1",
			"nginx", "nginx:1", "library/nginx", "docker.io/nginx", "docker.io/library/nginx:1",
			"index.docker.io/library/nginx", "registry-1.docker.io/library/nginx",
			"registry.hub.docker.com/library/nginx", "DOCKER.io/library/nginx", "docker.io:443/library/nginx",
			"index.docker.io:443/library/nginx", "somebody/nginx" + digest, "nginx" + digest, "docker.io//nginx",
			"Index.Docker.IO/nginx",
		},
		allowed: {
			"good.test/tool", "good.test/toolsx/y", "good.test.evil.test/tools/x", "evil.test/good.test/tools/x",
			"good.test:5000/tools/x", "good.testx/tools/x", "xgood.test/tools/x", "good.test/tools/../../evil.test/x",
			"good.test/tools/..", "good.test@evil.test/tools/x", "evil.test#good.test/tools/x",
			"evil.test?good.test/tools/x", "tools/x", "good-test/tools/x", "wherry.dev/toolbox2",
			"wherry.dev.evil.test/toolbox", "evil.test/wherry.dev/toolbox", "wherry.dev/toolbox/x",
			"docker.io/wherry.dev/toolbox", "good.test/tools", "",
		},
	}
	for ns, images := range rows {
		for _, image := range images {
			// Refused by the policy, or as no image at all.
			if err := try(ns, image); err == nil || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
				t.Errorf("%q is let in where %s: %v", image,
					map[bool]string{true: "it is denied", false: "others are allowed"}[ns == denied], err)
			}
		}
	}
	if n := len(rows[denied]) + len(rows[allowed]); n < 60 {
		t.Errorf("only %d spellings", n)
	}
	// The same on the way of a debug container.
	web := pod("web")
	web.Spec.Containers[0].Image = "good.test/tools/x:1"
	createPod(t, c, allowed, web)
	for _, image := range rows[allowed] {
		body := `{"spec":{"ephemeralContainers":[{"name":"d","image":"` + image + `"}]}}`
		if _, err := c.CoreV1().Pods(allowed).Patch(t.Context(), "web", "application/strategic-merge-patch+json",
			[]byte(body), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "ephemeralcontainers"); err == nil {
			t.Errorf("%q is let in as a debug container", image)
		}
	}
}
