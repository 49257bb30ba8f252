// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/test/images"
)

// image runs wherry image with the server's data folder.
func (s *Server) image(t *testing.T, stdin string, args ...string) Result {
	t.Helper()
	return runWherry(t, func(c *exec.Cmd) {
		c.Env = append(c.Env, "WHERRY_DATA_DIR="+s.DataDir)
		c.Stdin = strings.NewReader(stdin)
	}, append([]string{"image"}, args...)...)
}

// PL-03: wherry image login asks the registry, keeps what it takes for root alone, and pods and image pull use it; --creds is for once.
func TestImageLogin(t *testing.T) {
	t.Parallel()
	srv := own(t)
	s := srv.Space(t)
	reg := srv.Registry(t)
	reg.Lock("ann", "secret word")
	ref := reg.Push(srv, images.ToolRef, "team/tool:1")
	srv.image(t, "", "pull", ref).exits(1).Says("wherry image login "+reg.Host, "--creds USER")
	srv.image(t, "", "pull", "--creds", "ann:wrong", ref).exits(1).Says("rejected the credentials")
	srv.image(t, "", "pull", "--creds", "ann:secret word", ref).exits(0).Has(ref)
	srv.image(t, "", "rm", "-f", ref).exits(0)

	srv.image(t, "wrong\n", "login", "-u", "ann", "--password-stdin", reg.Host).exits(1).Says(`does not take user "ann" with this password`)
	file := filepath.Join(srv.DataDir, "config.json")
	if _, err := os.Stat(file); err == nil {
		t.Error("a login that was refused is kept")
	}
	srv.image(t, "secret word\n", "login", "-u", "ann", "--password-stdin", reg.Host).exits(0).Has("logged in to " + reg.Host + " as ann; stored in " + file)
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", st.Mode(), err)
	}
	srv.image(t, "", "pull", ref).exits(0)
	srv.image(t, "", "rm", "-f", ref).exits(0)
	s.Create(NewPod("private", from(ref, corev1.PullIfNotPresent)))
	s.WaitReady("private")

	srv.image(t, "", "logout", "https://"+reg.Host+"/").exits(0).Has("logged out of " + reg.Host)
	srv.image(t, "", "logout", reg.Host).exits(1).Says("is not logged in")
	srv.image(t, "", "pull", reg.Push(srv, images.ToolRef, "team/tool:2")).exits(1).Says("wherry image login")
	srv.image(t, "", "login", "-u", "a", "-p", "b", reg.Host+"/team").exits(1).Says("name its host alone")
	srv.image(t, "", "pull", "wherry.dev/none:1").exits(1).Says("is never fetched from a registry")
}

// wherry image tag, inspect, ls and prune: names are given and found by pods; what a container needs, what is built in and what has a name
// is not pruned unless asked for.
func TestImageTidy(t *testing.T) {
	t.Parallel()
	srv := own(t)
	s := srv.Space(t)
	srv.image(t, "", "tag", images.ToolRef, "app:stable").exits(0).Has("docker.io/library/app:stable\n")
	srv.image(t, "", "tag", images.ToolRef, "wherry.dev/toolbox:latest").exits(1).Says("choose another")
	srv.image(t, "", "tag", "none:1", "x:1").exits(1).Says("no such image on this node")
	s.Create(NewPod("stable", from("app:stable", corev1.PullNever)))
	s.WaitReady("stable")

	var told []struct {
		ID   string
		Tags []string
		Spec struct {
			OS     string
			Config struct{ Entrypoint []string }
		}
	}
	if err := json.Unmarshal([]byte(srv.image(t, "", "inspect", "app:stable").exits(0).Out), &told); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || told[0].Spec.OS != "linux" || len(told[0].Spec.Config.Entrypoint) == 0 || len(told[0].Tags) < 2 {
		t.Errorf("inspect told %+v", told)
	}
	srv.image(t, "", "ls", "-q", "app").exits(0).Is("docker.io/library/app:stable")
	srv.image(t, "", "ls", "-q", "--filter", "dangling=true").exits(0).Is("")
	srv.image(t, "", "ls", "--format", "{{.Repository}} {{.Tag}}", "app").exits(0).Is("docker.io/library/app stable")
	srv.image(t, "", "inspect", "-f", "{{.spec.os}}", "app:stable").exits(0).Is("linux")
	runWherry(t, func(c *exec.Cmd) { c.Env = append(c.Env, "WHERRY_DATA_DIR="+srv.DataDir) }, "images", "-f", "reference=app:stable").exits(0).Has("app:stable")

	reg := srv.Registry(t)
	idle := reg.Push(srv, images.ToolRef, "idle:1")
	srv.image(t, "", "pull", "-q", idle).exits(0).Is(idle)
	srv.image(t, "n\n", "prune", "-a").exits(1).Says("nothing was removed")
	srv.image(t, "", "prune", "-f").exits(0).Says("removed 0,")
	all := srv.image(t, "yes\n", "prune", "-a").exits(0)
	all.Has(idle)
	if strings.Contains(all.Out, "app:stable") || strings.Contains(all.Out, "wherry.dev") {
		t.Errorf("prune removed what is needed:\n%s", all.Out)
	}
	s.Create(NewPod("again", from("app:stable", corev1.PullNever)))
	s.WaitReady("again")
}
