// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"io/fs"
	"path/filepath"
	"testing"
)

// FuzzOneOff makes a pod of what may stand on the command line of wherry run.
func FuzzOneOff(f *testing.F) {
	f.Add("nginx", "1000:1000", "./data:/data:ro", "127.0.0.1:8080:80/udp", "A=1", "# x\nB=2\nHOME\n")
	f.Add("a/b@sha256:0", "-1", ":::", "[::1]:1:2", "=", "=\n")
	f.Add("x_", "+0", "/v", "65536:0", "A", "$(A)")
	f.Fuzz(func(t *testing.T, image, user, volume, port, env, file string) {
		o := OneOff{Image: image, User: user, Volumes: []string{volume}, Ports: []string{port}, Env: []string{env}, EnvFiles: []string{"file"}, Command: []string{env}}
		here := Here{Folder: "/home", Getenv: func(name string) (string, bool) { return name, name != "" }, ReadFile: func(name string) ([]byte, error) {
			if name != "file" {
				return nil, fs.ErrNotExist
			}
			return []byte(file), nil
		}}
		pod, err := o.pod(here)
		if err != nil {
			return
		}
		c := pod.Spec.Containers[0]
		if c.Name == "" || len(c.Name) > 50 || pod.GenerateName != c.Name+"-" {
			t.Errorf("image %q: container %q, pod %q", image, c.Name, pod.GenerateName)
		}
		if s := c.SecurityContext; (s == nil) != (user == "") || s != nil && (*s.RunAsUser < 0 || s.RunAsGroup != nil && *s.RunAsGroup < 0) {
			t.Errorf("user %q: %v", user, s)
		}
		if p := c.Ports[0]; p.HostPort < 1 || p.HostPort > 65535 || p.ContainerPort < 1 || p.ContainerPort > 65535 {
			t.Errorf("port %q: %v", port, p)
		}
		if m, host := c.VolumeMounts[0], pod.Spec.Volumes[0].HostPath; !filepath.IsAbs(m.MountPath) || host != nil && !filepath.IsAbs(host.Path) {
			t.Errorf("volume %q: %v, %v", volume, m, host)
		}
		seen := map[string]bool{}
		for _, v := range c.Env {
			if v.Name == "" || seen[v.Name] {
				t.Errorf("%q, %q: %v", env, file, c.Env)
			}
			seen[v.Name] = true
		}
	})
}
