// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"slices"
	"strings"
	"testing"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// toolboxStatus asks the CRI for the debug image by the name a pod gives it.
func toolboxStatus(t *testing.T, r *Runtime) *criapi.Image {
	t.Helper()
	res, err := criapi.NewImageServiceClient(r.Conn()).ImageStatus(t.Context(), &criapi.ImageStatusRequest{
		Image: &criapi.ImageSpec{Image: debugask.ToolboxImage},
	})
	if err != nil || res.Image == nil {
		t.Fatalf("the CRI does not know %s (%v)", debugask.ToolboxImage, err)
	}
	return res.Image
}

// Issue 4, 2: the debug image is there from the start, without a registry, pinned, and its shell runs as any user.
func TestToolboxIsThere(t *testing.T) {
	r := start(t, dataFolder(t))
	img := toolboxStatus(t, r)
	if !img.Pinned || !slices.Contains(img.RepoTags, toolboxRef) {
		t.Errorf("tags %q, pinned %v; want %s, pinned", img.RepoTags, img.Pinned, toolboxRef)
	}
	p := runPod(t, r)
	id := p.run("debug", nil, func(c *criapi.ContainerConfig) {
		c.Image.Image = debugask.ToolboxImage
		sc := c.Linux.SecurityContext
		sc.ReadonlyRootfs = true
		sc.RunAsUser = &criapi.Int64Value{Value: 12345}
		sc.Capabilities = &criapi.Capability{DropCapabilities: []string{"ALL"}}
	})
	exec := func(command string) string {
		res, err := p.cri.ExecSync(t.Context(), &criapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"sh", "-c", command}, Timeout: 20})
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return string(res.Stdout) + string(res.Stderr)
	}
	for command, want := range map[string]string{
		"echo one | tr o 0; id -u":               "0ne\n12345\n",
		"ls /licenses | grep -c mvdan.cc":        "1\n", // and those of all other modules in it
		"ps -o pid=,args= | head -n 1":           "1 /bin/sh\n",
		"grep -c nobody /etc/passwd; echo $HOME": "1\n/root\n",
	} {
		if got := exec(command); strings.TrimLeft(got, " ") != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	p.stop()
}

// What changed the image, or removed it, is set right at the next start; the former one is not kept.
func TestToolboxIsSetRight(t *testing.T) {
	dir := dataFolder(t)
	r := start(t, dir)
	first := toolboxStatus(t, r)
	restart := func(change func(*containerd.Client) error) *criapi.Image {
		t.Helper()
		if err := change(r.client); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		r = start(t, dir)
		return toolboxStatus(t, r)
	}
	ctx := namespaces.WithNamespace(t.Context(), Namespace)

	if again := restart(func(*containerd.Client) error { return nil }); again.Id != first.Id || !again.Pinned {
		t.Errorf("after a restart: %v, want %v", again, first)
	}
	removed := restart(func(c *containerd.Client) error { return c.ImageService().Delete(ctx, toolboxRef) })
	if removed.Id != first.Id || !removed.Pinned {
		t.Errorf("after it was removed: %v, want %v", removed, first)
	}
	// Another wherry's: here the image of the pause, with another hash; the pause keeps its own names.
	changed := restart(func(c *containerd.Client) error {
		store := c.ImageService()
		img, err := store.Get(ctx, toolboxRef)
		if err != nil {
			return err
		}
		pause, err := pauseImage()
		if err != nil {
			return err
		}
		other, err := store.Get(ctx, pause.ref)
		if err != nil {
			return err
		}
		img.Target = other.Target
		img.Labels[archiveLabel] = "another"
		_, err = store.Update(ctx, img)
		return err
	})
	if changed.Id != first.Id || !changed.Pinned || !slices.Contains(changed.RepoTags, toolboxRef) {
		t.Errorf("after it was changed: %v, want %v", changed, first)
	}
}
