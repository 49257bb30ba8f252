// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/plain"
)

func TestParsePlace(t *testing.T) {
	for text, want := range map[string]place{
		"file":                {path: "file"},
		"/a:b":                {path: "/a:b"},
		"./a:b":               {path: "./a:b"},
		"~/a:b":               {path: "~/a:b"},
		"-":                   {path: "-"},
		"web:/etc/x":          {pod: "web", path: "/etc/x"},
		"web:x":               {pod: "web", path: "x"},
		"shop/web:/etc/x:1":   {namespace: "shop", pod: "web", path: "/etc/x:1"},
		"pod/web:/x":          {pod: "pod/web", path: "/x"},
		"deploy/web:x":        {pod: "deploy/web", path: "x"},
		"shop/svc/web:/x":     {namespace: "shop", pod: "svc/web", path: "/x"},
		"shop/web/db:/x":      {},
		"shop/svc/:/x":        {},
		"svc/svc/web/db:/x":   {},
		":/etc":               {path: ":/etc"},
		"web:":                {},
		"a/b/c:/x":            {},
		"shop/:/x":            {},
		"dir/sub/file-no-pod": {path: "dir/sub/file-no-pod"},
	} {
		got, err := parsePlace(text)
		if want == (place{}) {
			if err == nil {
				t.Errorf("%q was taken for %+v", text, got)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

// DA-13: a container of this machine is told from a pod that is called like its engine; what could be both is refused.
func TestParsePlaceOnHost(t *testing.T) {
	for text, want := range map[string]string{"docker:web:/etc/x": "docker:web /etc/x", "docker:web:x": "docker:web x",
		"cri:web/app:/x:1": "cri:web/app /x:1", "pid:12:/x": "pid:12 /x", "docker:/etc/x": "pod docker /etc/x",
		"default/docker:web": "pod docker web"} {
		got, err := parsePlace(text)
		is := "pod " + got.pod
		if got.host != nil {
			is = got.host.String()
		}
		if err != nil || is+" "+got.path != want {
			t.Errorf("%q: %s %s, %v", text, is, got.path, err)
		}
	}
	for text, want := range map[string]string{"docker:web": "NAMESPACE/docker:web for a pod", "docker:web:": "path is missing", "pid:x:/y": "number of a process"} {
		if got, err := parsePlace(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	from, err := parsePlace("docker:web:/proc/1/environ")
	if err != nil {
		t.Fatal(err)
	}
	if err := checkKernels(from, place{path: "x"}); err == nil || !strings.Contains(err.Error(), "wherry debug docker:web") {
		t.Errorf("%v", err)
	}
}

// A copy goes into an existing folder, else it takes the destination's name; a folder that is named as such must be there.
func TestLocalTarget(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string][2]string{
		dir:                        {dir, "base"},
		filepath.Join(dir, "new"):  {dir, "new"},
		filepath.Join(dir, "file"): {dir, "file"},
		dir + "/none/":             {},
	} {
		folder, name, err := localTarget(to, "base")
		if want == [2]string{} {
			if err == nil {
				t.Errorf("%s: %s %s, want an error", to, folder, name)
			}
			continue
		}
		if err != nil || folder != want[0] || name != want[1] {
			t.Errorf("%s: %s %s %v, want %v", to, folder, name, err, want)
		}
	}
	if folder, name, err := localTarget(dir, "/"); err != nil || folder != dir || name != "." {
		t.Errorf("the whole filesystem: %s %s %v", folder, name, err)
	}
}

func TestChosenContainer(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init"}}, Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}}}
	choose := func(name, want string) {
		t.Helper()
		if got, err := chosenContainer(pod, name); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", name, got, err, want)
		}
	}
	choose("", "a")
	choose("b", "b")
	choose("init", "init")
	choose("none", "")
	pod.Annotations = map[string]string{"kubectl.kubernetes.io/default-container": "b"}
	choose("", "b")
}

// What the other side says names pod and container; what the node says of the rest of the pod is told only if the copy fails, and then only
// what is about the container.
func TestRelay(t *testing.T) {
	const words = "wherry: the pod's sandbox is gone: the command runs in its own network\nwherry: container app is left out: it has not run yet\n" +
		"wherry: container other is left out: x\ntotal 2097152\ncp-pack: /no does not exist\n"
	m := &meter{}
	for _, err := range []error{nil, &cmdline.Exit{Code: 1}} {
		var out bytes.Buffer
		r := newRelay(&out, other{container: "app", words: "container app of pod web"}, m)
		for _, part := range []string{words[:70], words[70:150], words[150:]} {
			if _, werr := io.WriteString(r, part); werr != nil {
				t.Fatal(werr)
			}
		}
		want := "container app of pod web: /no does not exist\n"
		if r.end(err) != err {
			t.Error("another end")
		}
		if err != nil {
			want += "container app is left out: it has not run yet\n"
		}
		if out.String() != want {
			t.Errorf("after %v:\n%s", err, out.String())
		}
	}
	m.bytes.Store(1 << 20)
	if got := m.text(); got != "1.0 of 2.0 MiB (50%)" {
		t.Errorf("%q", got)
	}
}

// Several sources, and what a pattern matches, go into a folder that is there; - stands alone.
func TestCpManySources(t *testing.T) {
	dir := t.TempDir()
	if folder, name, err := localTarget(dir, "*.log"); err != nil || folder != dir || name != "." {
		t.Errorf("%s %s %v", folder, name, err)
	}
	if _, _, err := localTarget(filepath.Join(dir, "none"), "*.log"); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("%v", err)
	}
	for _, args := range [][]string{{"a", "-", "web:/x"}, {"web:/a", "web:/b", "-"}} {
		err := (&cpFlags{}).all(t.Context(), cmdline.Terminal{}, args[:2], args[2])
		if exit, ok := errors.AsType[*cmdline.Exit](err); !ok || exit.Code != cmdline.ExitUsage {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// What is copied never takes the place of a pipe or device.
func TestCpReplacesFilesOnly(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, link, os.DevNull} {
		if folder, _, err := localTarget(name, "base"); err == nil {
			t.Errorf("%s is replaced in %s", name, folder)
		}
	}
}

// TestHostileFileNames (RS-13): the name of a file in a container does not act on the terminal. ATTACK A26.
func TestHostileFileNames(t *testing.T) {
	var tty strings.Builder
	r := newRelay(plain.New(&tty), other{container: "main", words: "container main of pod web"}, nil)
	_, _ = r.Write([]byte("cp-pack: left out: a\x1b]0;PWNED\a\n"))
	if err := r.end(nil); err != nil {
		t.Error(err)
	}
	if want := "container main of pod web: left out: a\\x1b]0;PWNED\\x07\n"; tty.String() != want {
		t.Errorf("got %q, want %q", tty.String(), want)
	}
}
