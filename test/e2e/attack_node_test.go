// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/ociimage"
	"github.com/wherryproject/wherry/test/images"
)

// hoard is a folder of the machine that no container is to reach: what it holds is a secret, and stays as it is.
type hoard struct {
	t           *testing.T
	dir, secret string
}

const treasure = "the machine's own treasure"

func newHoard(t *testing.T) *hoard {
	t.Helper()
	h := &hoard{t: t, dir: t.TempDir()}
	if err := os.Chmod(h.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h.secret = filepath.Join(h.dir, "secret")
	if err := os.WriteFile(h.secret, []byte(treasure), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.untouched)
	return h
}

// untouched fails the test if the hoard is not as it was.
func (h *hoard) untouched() {
	h.t.Helper()
	text, err := os.ReadFile(h.secret)
	if err != nil || string(text) != treasure {
		h.t.Errorf("%s holds %q, %v", h.secret, text, err)
	}
	entries, err := os.ReadDir(h.dir)
	if err != nil || len(entries) != 1 {
		h.t.Errorf("%s holds %v, %v", h.dir, entries, err)
	}
}

// hidden fails the test if a text has the secret in it.
func (h *hoard) hidden(what string, texts ...string) {
	h.t.Helper()
	for _, text := range texts {
		if strings.Contains(text, treasure) {
			h.t.Errorf("%s: the machine's file is read: %q", what, text)
		}
	}
}

// copied fails the test if something that was copied out of a container is a copy of the secret. A link that was copied as a link is none.
func (h *hoard) copied(to string) {
	h.t.Helper()
	_ = filepath.WalkDir(to, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			text, _ := os.ReadFile(path)
			h.hidden("the copy at "+path, string(text))
		}
		return nil
	})
}

// importImage writes an image's archive and has the server import it.
func (k *kit) importImage(ref string, img v1.Image, err error) {
	k.t.Helper()
	k.must(err)
	archive := filepath.Join(k.t.TempDir(), "image.tar")
	f, err := os.Create(archive)
	k.must(err)
	k.must(ociimage.WriteTar(f, img, ref))
	k.must(f.Close())
	if out, err := k.Wherry(k.ctx(), "image", "import", archive).CombinedOutput(); err != nil {
		k.t.Fatalf("import %s: %v: %s", ref, err, out)
	}
}

// TestAttackNode: programs, links and images in containers do not come to the machine's own files, devices or settings, whichever way
// they are looked at from outside. (IX-04, IX-07, PL-05, PL-11, EC-21; ATTACK A16, A17, A18, A19, A31, A32, A36)
func TestAttackNode(t *testing.T) {
	t.Parallel()
	k := kitOn(t, own(t))
	h := newHoard(t)
	k.up(fmt.Sprintf(`
metadata: {name: links}
spec:
  containers:
  - name: main
    command: [sh, -c, "ln -s / /l1; ln -s /proc/1/root /l2; ln -s ../../../../../../../.. /l3; ln -s /proc/self/root /l4; ln -s /proc/self/fd /l5; ln -s %[1]s /l6; ln -s %[2]s /l7; IDLE"]
  - {name: swap, image: tool, command: [/tool, swap, /tmp/a, /tmp/b], volumeMounts: [{name: v, mountPath: /tmp}]}
  initContainers:
  - {name: first, command: [sh, -c, "mkdir /tmp/a; ln -s %[1]s /tmp/b"], volumeMounts: [{name: v, mountPath: /tmp}]}
  volumes: [{name: v, emptyDir: {}}]
`, h.dir, h.secret))
	t.Run("links", func(t *testing.T) { (&kit{k.With(t), t}).attackLinks(h) })
	t.Run("probe", func(t *testing.T) { (&kit{k.With(t), t}).attackByProbe() })
	t.Run("working folders", func(t *testing.T) { (&kit{k.With(t), t}).attackWorkingDirs(h) })
	t.Run("images with links", func(t *testing.T) { (&kit{k.With(t), t}).attackLinkedImages(h) })
	t.Run("archives", func(t *testing.T) { (&kit{k.With(t), t}).attackArchives(h) })
	t.Run("volumes and messages", func(t *testing.T) { (&kit{k.With(t), t}).attackVolumes(h) })
	t.Run("restricted", func(t *testing.T) { (&kit{k.Server.Space(t), t}).attackRestricted() })
}

// attackLinks: A16.
func (k *kit) attackLinks(h *hoard) {
	ways := []string{"/l1" + h.secret, "/l2" + h.secret, "/l3" + h.secret, "/l4" + h.secret, "/l5/3" + h.secret, "/l5/../../../.." + h.secret, "/l6/secret", "/l7"}
	var script strings.Builder
	for _, way := range ways {
		fmt.Fprintf(&script, "cat /c/main%s; ", way)
	}
	fmt.Fprintf(&script, "for i in $(seq 100); do cat /c/swap/tmp/a/secret /c/swap/tmp/b/secret /c/swap/tmp/a%[1]s /c/main/l2/c/main%[1]s; done", h.secret)
	for _, change := range []func(*imageExec){func(*imageExec) {}, writable} {
		out, errs, _ := k.into("links", script.String(), change, func(x *imageExec) { x.container = "main" })
		h.hidden("image exec", out, errs)
	}
	k.into("links", fmt.Sprintf("for i in $(seq 100); do echo x > /c/swap/tmp/a/new; echo x > /c/main/l6/new; echo x > /c/main/l1%s/new; done", h.dir), writable)
	dir := k.t.TempDir()
	in := filepath.Join(dir, "in")
	k.must(os.WriteFile(in, []byte("in"), 0o644))
	for i, way := range ways {
		out := filepath.Join(dir, fmt.Sprint("out", i))
		r := k.wherry(nil, "cp", "-c", "main", "links:"+way, out)
		h.copied(out)
		h.hidden("cp of "+way, r.Out, r.Err)
	}
	for i := range 2 {
		out := filepath.Join(dir, fmt.Sprint("raced", i))
		r := k.wherry(nil, "cp", "-c", "swap", "links:/tmp", out)
		h.copied(out)
		h.hidden("cp of what is swapped", r.Out, r.Err)
		k.wherry(nil, "cp", "-c", "swap", in, "links:/tmp/a/new")
	}
	for _, way := range []string{"/l6/new", "/l1" + h.dir + "/new", "/l7"} {
		k.wherry(nil, "cp", "-c", "main", in, "links:"+way)
	}
	h.untouched()
}

// attackByProbe: A17.
func (k *kit) attackByProbe() {
	for _, change := range []func(*imageExec){func(*imageExec) {}, target("main")} {
		out, errs, code := k.into("links", "", change, func(x *imageExec) { x.image, x.command = images.ToolRef, []string{"/tool", "probe", "/c/main"} })
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if code != 0 || len(lines) < 25 {
			k.t.Errorf("code %d, %d lines: %s%s", code, len(lines), out, errs)
		}
		for _, line := range lines {
			if strings.HasSuffix(line, ": ok") {
				k.t.Errorf("image exec may: %s", line)
			}
		}
	}
}

// attackWorkingDirs: A18. A runtime that enters the folder of one of its own descriptors would be outside of the container.
func (k *kit) attackWorkingDirs(h *hoard) {
	base := k.World.Images[images.BusyboxRef]
	for fd := 3; fd < 12; fd++ {
		ref := fmt.Sprintf("evil.test/fd:%d", fd)
		img, err := withConfig(base, func(c *v1.Config) { c.WorkingDir = fmt.Sprintf("/proc/self/fd/%d", fd) })
		k.importImage(ref, img, err)
		var out, errs bytes.Buffer
		up := strings.Repeat("../", 12)
		code, err := k.start("links", imageExec{image: ref, command: []string{"sh", "-c", "pwd; cat " + up + strings.TrimPrefix(h.secret, "/")}, stdout: &out, stderr: &errs, ctx: k.ctx()})
		if err == nil && code == 0 {
			k.t.Errorf("descriptor %d: it ran: %s", fd, out.String())
		}
		h.hidden(ref, out.String(), errs.String())
	}
	p := NewPod("fd", corev1.Container{Name: "main", Image: "evil.test/fd:7", Command: []string{"sh", "-c", "cat " + strings.Repeat("../", 12) + strings.TrimPrefix(h.secret, "/")}})
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	k.Create(p)
	k.Wait("fd", "failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
}

// attackLinkedImages: A19.
func (k *kit) attackLinkedImages(h *hoard) {
	settings := map[string]string{}
	for _, name := range []string{"/proc/sys/kernel/core_pattern"} {
		text, err := os.ReadFile(name)
		k.must(err)
		settings[name] = string(text)
	}
	base := k.World.Images[images.BusyboxRef]
	for i, links := range []map[string]string{
		{"c": "/proc/1/root"}, {"c": "/proc/self/root/../../../" + h.dir}, {"c": h.dir}, {"c": "../../../../.." + h.dir},
		{"dev/null": "/proc/sys/kernel/core_pattern", "dev/console": "/proc/sysrq-trigger", "dev/termination-log": h.secret},
		{"dev": h.dir}, {"proc": h.dir}, {"etc": h.dir},
	} {
		ref := fmt.Sprintf("evil.test/links:%d", i)
		img, err := withLinks(base, links)
		k.importImage(ref, img, err)
		var out, errs bytes.Buffer
		script := fmt.Sprintf("echo evil > /dev/null; echo evil > /dev/termination-log; cat /c%[1]s /c/main%[1]s /c/secret /dev/secret /proc/secret /etc/secret; echo evil > /c/new; true", h.secret)
		_, err = k.start("links", imageExec{image: ref, command: []string{"sh", "-c", script}, stdout: &out, stderr: &errs, ctx: k.ctx()})
		h.hidden(fmt.Sprint(links), out.String(), errs.String(), fmt.Sprint(err))
		p := NewPod(fmt.Sprint("linked", i), corev1.Container{Name: "main", Image: ref, Command: []string{"sh", "-c", script}, TTY: true})
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		k.Create(p)
	}
	for i := range 8 {
		p := k.Wait(fmt.Sprint("linked", i), "ended", func(p *corev1.Pod) bool {
			return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		})
		said := p.Status.ContainerStatuses[0].State
		h.hidden(p.Name, said.String())
		if said.Terminated != nil && said.Terminated.Reason == "Completed" {
			h.hidden(p.Name, k.log(p.Name, "main"))
		}
	}
	for name, was := range settings {
		if text, err := os.ReadFile(name); err != nil || string(text) != was {
			k.t.Errorf("%s is %q, was %q (%v)", name, text, was, err)
		}
	}
	h.untouched()
}

// attackVolumes: A31.
func (k *kit) attackVolumes(h *hoard) {
	mounts := []string{"root", "self", "up", "away", "file"}
	var containers strings.Builder
	for _, m := range mounts {
		fmt.Fprintf(&containers, "  - {name: %[1]s, command: [sh, -c, 'cat /m%[2]s /m/secret /m; echo evil > /m/new'], volumeMounts: [{name: v, mountPath: /m, subPath: %[1]s}]}\n", m, h.secret)
	}
	k.pod(fmt.Sprintf(`
metadata: {name: subpaths}
spec:
  restartPolicy: Never
  volumes: [{name: v, emptyDir: {}}]
  initContainers:
  - {name: first, command: [sh, -c, "cd /v; ln -s / root; ln -s /proc/self/root self; ln -s ../../../../../../../../../.. up; ln -s %s away; ln -s %s file"], volumeMounts: [{name: v, mountPath: /v}]}
  containers:
%s`, h.dir, h.secret, containers.String()))
	p := k.Wait("subpaths", "judged", func(p *corev1.Pod) bool {
		judged := 0
		for _, s := range p.Status.ContainerStatuses {
			if s.State.Terminated != nil || s.State.Waiting != nil && s.State.Waiting.Reason == "CreateContainerConfigError" {
				judged++
			}
		}
		return judged == len(mounts)
	})
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Terminated != nil { // the link led to something within the volume
			h.hidden("subPath "+s.Name, k.log("subpaths", s.Name))
		} else if !strings.Contains(s.State.Waiting.Message, "subPath") {
			k.t.Errorf("subPath %s: %+v", s.Name, s.State)
		}
	}
	img, err := withLinks(k.World.Images[images.BusyboxRef], map[string]string{"there": h.dir, "self": "/proc/self/root" + h.dir, "up": "../../../../../.." + h.dir, "log": h.secret})
	k.importImage("evil.test/messages:1", img, err)
	paths := []string{"/there/secret", "/self/secret", "/up/secret", "/log", "/proc/self/root" + h.secret, "/there/../.." + h.secret, "/up/new"}
	p = NewPod("messages")
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	for i, path := range paths {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i), Image: "evil.test/messages:1", TerminationMessagePath: path,
			Command: []string{"sh", "-c", "cat " + path + "; echo evil > " + path}})
	}
	k.Create(p)
	p = k.Wait("messages", "ended", func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	for _, s := range p.Status.ContainerStatuses {
		h.hidden("the message of "+s.Name, s.State.String())
		if s.State.Terminated != nil && s.State.Terminated.Reason == "Completed" {
			h.hidden("the log of "+s.Name, k.log("messages", s.Name))
		}
	}
	h.untouched()
}

// attackRestricted: A36. The image would be root.
func (k *kit) attackRestricted() {
	k.Kubectl("label", "namespace", k.Namespace, "pod-security.kubernetes.io/enforce=restricted")
	k.up(`
metadata: {name: web}
spec:
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
  - {name: c, command: [sh, -c, IDLE], securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
`)
	const who = "id -u; grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status"
	want := k.sh("web", "c", who)
	if !strings.Contains(want, "NoNewPrivs:\t1") || !strings.Contains(want, "CapBnd:\t0000000000000000") || !strings.HasPrefix(want, "1000") {
		k.t.Fatalf("the container itself: %q", want)
	}
	img, err := withConfig(k.World.Images[images.BusyboxRef], func(c *v1.Config) { c.User = "0:0" })
	k.importImage("evil.test/root:1", img, err)
	for _, image := range []string{images.BusyboxRef, "evil.test/root:1"} {
		k.wherry(nil, "exec", "-m", image, "web", "--", "sh", "-c", who).exits(0).Is(want)
		k.wherry(nil, "exec", "-m", image, "-c", "c", "web", "--", "sh", "-c", who).exits(0).Is(want)
	}
}
