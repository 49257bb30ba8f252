// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/wherryproject/wherry/internal/ociimage"
	"github.com/wherryproject/wherry/test/images"
)

// images sees to it that the images are there that the guides speak of; that of app:1 is the one that is in a file, and in the engines.
func (d *desk) images(t *testing.T) {
	t.Helper()
	busybox := d.srv.World.Images[images.BusyboxRef]
	if busybox == nil {
		t.Skip(d.srv.World.NoBusy)
	}
	archive(t, filepath.Join(d.dir, "app.tar"), d.srv.World.Images[images.ToolRef], "docker.io/library/app:1")
	script, err := ociimage.Build(ociimage.Spec{Files: []ociimage.File{
		{Path: "/audit.sh", Mode: 0o755, Data: []byte("#!/bin/sh\necho containers: $(ls /c)\n")},
	}})
	check(t, err)
	layers, err := script.Layers()
	check(t, err)
	audit, err := mutate.AppendLayers(busybox, layers...)
	check(t, err)
	audit, err = mutate.Config(audit, v1.Config{Cmd: []string{"/audit.sh"}, Env: []string{"PATH=/bin"}})
	check(t, err)
	archive(t, filepath.Join(d.root, "tools.tar"), audit, "registry.example.com/tools:1")
	for i, image := range []struct {
		ref string
		v1.Image
	}{
		{"registry.example.com/audit:1", audit}, {"docker.io/library/busybox:1.37", busybox},
	} {
		path := filepath.Join(d.root, fmt.Sprintf("image-%d.tar", i))
		archive(t, path, image, image.ref)
		if out, err := d.srv.Wherry(t.Context(), "image", "import", "--data-dir", d.srv.DataDir, path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	made, err := filepath.Abs("../../bin/images")
	check(t, err)
	check(t, os.Symlink(made, filepath.Join(d.dir, "bin/images")))
	for name, of := range map[string][]string{
		"three-tier": {"notes.tar", "postgres.tar"}, "sidecar-injector": {"sidecar-injector.tar", "sidecar-injector"},
	} {
		d.has[name] = true
		for _, file := range of {
			if _, err := os.Stat(filepath.Join(made, file)); err != nil {
				d.has[name] = false
			}
		}
	}
	numa, err := filepath.Glob("/sys/devices/system/node/node0")
	d.has["numa"] = err == nil && len(numa) > 0
}

func archive(t *testing.T, path string, image v1.Image, ref string) {
	t.Helper()
	f, err := os.Create(path)
	check(t, err)
	defer f.Close()
	check(t, ociimage.WriteTar(f, image, ref))
}

// engines starts those that this machine has: Docker with the containers web and crashed, containerd, podman; each with app:1.
func (d *desk) engines(t *testing.T) {
	t.Helper()
	app, tools := filepath.Join(d.dir, "app.tar"), filepath.Join(d.root, "tools.tar")
	if root, runc := podmanPrograms(); root != "" && runc != "" {
		podman := NeedPodman(t)
		podman.Run(t, "load", "--signature-policy", filepath.Join(podman.dir, "policy.json"), "-i", app)
		// The person who called sudo has none. Short for image save, to which podman's own shim gives what Debian has in /etc.
		d.program(t, "podman", `[ "$(id -u)" = 0 ] || { echo '[]'; exit; }; [ "$1" != save ] || set -- image "$@"; exec `+
			filepath.Join(podman.Path, "podman")+` "$@"`)
		d.has["podman"] = true
	}
	if containerdPrograms() == "" {
		return
	}
	containerd := StartContainerd(t)
	containerd.Import(t, app)
	d.program(t, "ctr", `exec `+filepath.Join(containerd.bin, "ctr")+` --address `+containerd.socket+` "$@"`)
	d.env = append(d.env, "CONTAINERD_ADDRESS="+containerd.socket)
	d.has["containerd"] = true
	if dockerRoot() == "" {
		return
	}
	docker := StartDocker(t, containerd)
	for _, path := range []string{app, tools} {
		docker.Run(t, "load", "-i", path)
	}
	docker.Run(t, "run", "-d", "--name", "web", "--network", "none", "registry.example.com/tools:1", "sh", "-c",
		"mkdir -p /etc/nginx; echo 'worker_processes 1;' >/etc/nginx/nginx.conf; exec sleep 1000000")
	docker.Run(t, "run", "-d", "--name", "crashed", "--network", "none", "registry.example.com/tools:1", "sh", "-c",
		"echo last words; echo core >/tmp/core.1; exit 3")
	docker.Run(t, "wait", "crashed")
	d.program(t, "docker", `exec `+docker.client+` "$@"`)
	d.env = append(d.env, "DOCKER_HOST=unix://"+docker.Socket)
	d.has["docker"] = true
}

// registry has the node go to one on this machine for registry.example.com, which wants a password and has an image.
func (d *desk) registry(t *testing.T) {
	t.Helper()
	r := d.srv.Registry(t)
	r.Lock("ann", "secret")
	r.Push(d.srv, images.ToolRef, "team/app:1")
	check(t, os.WriteFile(filepath.Join(d.dir, "password"), []byte("secret\n"), 0o644))
	hosts, err := os.ReadFile(filepath.Join(d.srv.DataDir, "registries", r.Host, "hosts.toml"))
	check(t, err)
	for _, name := range []string{"registry.example.com", "registry.example.com:5000"} {
		dir := filepath.Join(d.srv.DataDir, "registries", name)
		check(t, os.MkdirAll(dir, 0o755))
		check(t, os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(strings.TrimSpace(string(hosts))+"\n"), 0o644))
	}
}
