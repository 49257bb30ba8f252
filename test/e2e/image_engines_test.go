// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/ociimage"
	"github.com/wherryproject/wherry/test/images"
)

// TestImageEngines: an image that this machine's Docker or containerd has is imported by its name there and runs in a pod, whatever way the
// name is written; what cannot be had is refused with words, and nothing is imported. (PL-03, WL-23)
func TestImageEngines(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	containerd := StartContainerd(t)
	docker := StartDocker(t, containerd)
	k := kitOn(t, own(t))
	base := k.Server.World.Images[images.ToolRef]
	for _, ref := range []string{"fromdocker:1", "docker.io/library/fromcontainerd:1", "registry.test/team/app:2"} {
		archive := filepath.Join(t.TempDir(), "image.tar")
		f, failed := os.Create(archive)
		k.must(failed)
		k.must(ociimage.WriteTar(f, base, ref))
		k.must(f.Close())
		if ref == "fromdocker:1" {
			docker.Run(t, "load", "-i", archive)
			continue
		}
		containerd.Import(t, archive)
	}
	from := func(env []string, args ...string) (string, error) {
		cmd := k.Wherry(k.ctx(), append([]string{"image", "import"}, args...)...)
		cmd.Env = append(cmd.Env, env...)
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	of := []string{"DOCKER_HOST=unix://" + docker.Socket, "CONTAINERD_ADDRESS=" + containerd.socket}

	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"docker":                   {[]string{"docker:fromdocker:1"}, "docker.io/library/fromdocker:1"},
		"docker with slashes":      {[]string{"docker://fromdocker:1"}, "docker.io/library/fromdocker:1"},
		"containerd, short":        {[]string{"containerd:fromcontainerd:1"}, "docker.io/library/fromcontainerd:1"},
		"containerd, in full":      {[]string{"containerd:registry.test/team/app:2"}, "registry.test/team/app:2"},
		"containerd, in namespace": {[]string{"containerd:registry.test/team/app:2", "-n", "k8s.io"}, "registry.test/team/app:2"},
	} {
		if out, err := from(of, c.args...); err != nil || out != c.want {
			t.Errorf("%s: %q, %v; want %q", name, out, err, c.want)
		}
	}
	for _, image := range []string{"fromdocker:1", "fromcontainerd:1", "registry.test/team/app:2"} {
		name := strings.NewReplacer("/", "-", ":", "-", ".", "-").Replace(image)
		k.Create(NewPod(name, corev1.Container{Image: image, ImagePullPolicy: corev1.PullNever, Args: []string{"sleep"}}))
		k.WaitReady(name)
	}

	for name, c := range map[string]struct {
		env, args []string
		want      string
	}{
		"no such image of Docker":     {of, []string{"docker:absent:1"}, "absent:1"},
		"no such image of containerd": {of, []string{"containerd:absent:1"}, `there is no image "absent:1"`},
		"another namespace":           {of, []string{"containerd:fromcontainerd:1", "-n", "empty"}, "(namespaces: empty)"},
		"no Docker":                   {[]string{"DOCKER_HOST=unix:///no/such.sock"}, []string{"docker:a:1"}, "Docker is not here: there is no socket /no/such.sock"},
		"another machine's Docker":    {[]string{"DOCKER_HOST=tcp://10.0.0.1:2375"}, []string{"docker:a:1"}, "only engines of this machine"},
		"no containerd":               {nil, []string{"containerd:a:1", "--address", "/no/such.sock"}, "containerd is not here: there is no socket /no/such.sock"},
		"no image named":              {of, []string{"docker:"}, "which image?"},
	} {
		out, err := from(c.env, c.args...)
		if code, err := exitCode(err); err != nil || code == 0 || !strings.Contains(out, c.want) {
			t.Errorf("%s: code %d, %q; want %q", name, code, out, c.want)
		}
	}
}
