// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/ociimage"
	"github.com/wherryproject/wherry/test/images"
)

// rootless makes the tool's image anew with a numeric USER, as a distroless :nonroot has it, and returns its name.
func rootless(s *Space) string {
	s.T.Helper()
	const ref = "wherry.test/tool:nonroot"
	base := s.World.Images[images.ToolRef]
	file, err := base.ConfigFile()
	if err != nil {
		s.T.Fatal(err)
	}
	file.Config.User = "65532:65532"
	image, err := mutate.ConfigFile(base, file)
	if err != nil {
		s.T.Fatal(err)
	}
	archive := filepath.Join(s.T.TempDir(), "nonroot.tar")
	f, err := os.Create(archive)
	if err != nil {
		s.T.Fatal(err)
	}
	defer f.Close()
	if err := ociimage.WriteTar(f, image, ref); err != nil {
		s.T.Fatal(err)
	}
	if out, err := s.Wherry(s.Context(), "image", "load", "-i", archive).CombinedOutput(); err != nil {
		s.T.Fatalf("%v: %s", err, out)
	}
	return ref
}

// DC-14 IX-03 IX-04: a pod that must run without root, and whose image alone names its user, is looked into as that user: by debug with each
// profile, by image exec, by cp, and by kubectl debug; --user names another one, and root is refused.
func TestDebugWithoutRoot(t *testing.T) {
	t.Parallel()
	s := shared(t)
	p := NewPod("nr", Tool("sleep"))
	p.Spec.Containers[0].Image = rootless(s)
	p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true)}
	s.Create(p)
	s.WaitReady("nr")
	// The group in the image's USER is not the container's, here as with Kubernetes' own node: the user alone is given to the runtime.
	const who = `echo $(id -u):$(id -g)`
	for _, profile := range []string{"", "general", "baseline", "restricted", "netadmin", "sysadmin"} {
		r := s.wherry(nil, "debug", "nr", "--profile", profile, "--", "sh", "-c", who+"; ls /proc/1/root/tool").exits(0)
		if !strings.HasPrefix(r.Out, "65532:0\n") {
			t.Errorf("profile %q: %q", profile, r.Out)
		}
	}
	s.wherry(nil, "debug", "nr", "--user", "1000:2000", "--", "sh", "-c", who).exits(0).Is("1000:2000")
	s.wherry(nil, "debug", "nr", "--user", "0", "--", "sh", "-c", who).exits(1)
	s.wherry(nil, "exec", "nr", "-m", "wherry.dev/toolbox", "--", "sh", "-c", who+"; ls /c/main/tool").exits(0).Is("65532:0\n/c/main/tool")
	s.wherry(nil, "exec", "nr", "-m", "wherry.dev/toolbox", "--user", "1000", "--", "id", "-u").exits(0).Is("1000")

	dir := t.TempDir()
	file := filepath.Join(dir, "in")
	if err := os.WriteFile(file, []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.wherry(nil, "cp", file, "nr:/tmp/in").exits(0)
	s.wherry(nil, "cp", "nr:/tmp/in", filepath.Join(dir, "out")).exits(0)
	s.wherry(nil, "cp", "--user", "1000", "nr:/tmp/in", filepath.Join(dir, "again")).exits(0)
	for _, name := range []string{"out", "again"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != "hello" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	s.wherry(nil, "debug", "nr", "--", "stat", "-c", "%u:%g", "/proc/1/root/tmp/in").exits(0).Is("65532:0")
	s.Kubectl("debug", "nr", "--image", "wherry.dev/toolbox", "--target", "main", "--quiet", "--attach", "-c", "k", "--", "sh", "-c", who).Has("65532:0")
}
