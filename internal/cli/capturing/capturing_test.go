// SPDX-License-Identifier: Apache-2.0

package capturing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/capture"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/kernellog"
)

// ordinary is an API server that is not Wherry's, with a pod of which the user may see the pod, its log and its owner. It counts the
// commands that it would have run.
func ordinary(t *testing.T) (kubeconfig string, ran *int) {
	t.Helper()
	ran = new(int)
	answers := map[string]string{
		"/version": `{"gitVersion":"v1.37.2"}`,
		"/api/v1/namespaces/shop/pods/web": `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"shop","uid":"u1",
 "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"hidden"},
 "ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"r","controller":true}]},
 "spec":{"nodeName":"edge","containers":[{"name":"main","env":[{"name":"A","value":"hidden"}]}]},
 "status":{"phase":"Running","containerStatuses":[{"name":"main","state":{"running":{}},"restartCount":1,"lastState":{"terminated":{"exitCode":1}}}]}}`,
		"/apis/apps/v1/namespaces/shop/replicasets/web-1": `{"kind":"ReplicaSet","metadata":{"name":"web-1"},"spec":{"template":{"spec":{"containers":[{"env":[{"name":"A","value":"hidden"}]}]}}}}`,
		"/api/v1/namespaces/shop/pods/web/log":            "words\n",
		"/api/v1/namespaces/shop/events":                  `{"kind":"EventList","apiVersion":"v1","items":[]}`,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/exec") {
			*ran++
		}
		answer, ok := answers[r.URL.Path]
		if !ok {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			answer = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":"%s is not for you"}`, r.URL.Path)
		} else if strings.HasPrefix(answer, "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(srv.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"kind":"Config","apiVersion":"v1","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u","namespace":"shop"}}],
"clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}]}`, srv.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, ran
}

// capture runs the command.
func captured(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := New(cmdline.Terminal{Out: &stdout, Err: &stderr})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	if exit := (*cmdline.Exit)(nil); errors.As(err, &exit) {
		code = exit.Code
	} else if err != nil {
		code = 1
	}
	return code, stdout.String(), fmt.Sprint(stderr.String(), err)
}

// DA-12, DA-10: in a cluster that is not Wherry's, and without rights, there is a bundle of what can be had, which says what cannot; no
// command is sent to a server that would run it in the pod's own container.
func TestElsewhere(t *testing.T) {
	kubeconfig, ran := ordinary(t)
	file := filepath.Join(t.TempDir(), "b.tar.zst")
	code, out, errs := captured(t, "web", "--kubeconfig", kubeconfig, "-o", file, "--file", "/etc/hosts")
	if code != 0 || !strings.HasPrefix(out, file+": pod shop/web, ") || *ran != 0 {
		t.Fatalf("%d, %d commands: %s%s", code, *ran, out, errs)
	}
	for _, want := range []string{"node.yaml: /api/v1/nodes/edge is not for you", "events.yaml: it has none", "timeline.json: ", "containers/main (a part, or all): the API server at",
		"files/main/etc (a part, or all): "} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is not said: %s", want, errs)
		}
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := map[string]string{}
	if err := capture.Each(f, func(name string, _ int64, content io.Reader) error {
		text, err := io.ReadAll(content)
		files[name] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pod.yaml", "owners/replicaset-web-1.yaml", "logs/main.log", "logs/main.previous.log"} {
		if text := files[name]; text == "" || strings.Contains(text, "hidden") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if code, _, errs := captured(t, "web", "--kubeconfig", kubeconfig, "-o", file, "--time-limit", "1ns"); code != 0 || !strings.Contains(errs, "no time for it (--time-limit 1ns)") {
		t.Errorf("no time: %d, %s", code, errs)
	}
	if code, out, errs := captured(t, "web", "--kubeconfig", kubeconfig, "-o", "-", "-q"); code != 0 || !strings.HasPrefix(out, "\x28\xb5\x2f\xfd") {
		t.Errorf("to standard output: %d, %q, %s", code, out[:min(len(out), 10)], errs)
	}
}

// Wrong words are refused before anything is asked or written.
func TestRefusedWords(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "b")
	if err := os.WriteFile(file, []byte("no bundle"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"web --max-size 0":            "2 --max-size",
		"web --time-limit 0s":         "2 --time-limit",
		"web --file main:":            "2 --file",
		"web --address /x":            "2 docker:web",
		"dokcer:web":                  "2 docker:NAME",
		"show " + file:                "1 not a bundle made by wherry capture",
		"show " + file + " x -o json": "2 leave out x",
		"show " + file + "x":          "1 no such file",
		"show " + file + " -o words":  "1 use json or yaml",
	} {
		code, _, errs := captured(t, strings.Fields(line)...)
		if wantCode, words, _ := strings.Cut(want, " "); fmt.Sprint(code) != wantCode || !strings.Contains(errs, words) {
			t.Errorf("%s: %d, %s", line, code, errs)
		}
	}
}

// DA-12: of the kernel's messages those are taken that name the pod or container, in any spelling, and who was killed for it.
func TestKernelMessages(t *testing.T) {
	uid := "3c2a-11"
	at := func(n time.Duration, text string) kernellog.Message {
		return kernellog.Message{At: n * time.Microsecond, Text: text}
	}
	got := about([]kernellog.Message{at(100, "eth0: link up"), at(200, "oom-kill:task_memcg=/kubepods/pod3c2a-11/x,task=app"),
		at(201, "Memory cgroup out of memory: Killed process 7 (app)"), at(300, "Memory cgroup out of memory: Killed process 8 (other)"),
		at(400, "oom-kill:task_memcg=/kubepods.slice/pod3c2a_11.slice"), {}}, []string{uid, ""})
	want := "[200 µs] oom-kill:task_memcg=/kubepods/pod3c2a-11/x,task=app\n[201 µs] Memory cgroup out of memory: Killed process 7 (app)\n" +
		"[400 µs] oom-kill:task_memcg=/kubepods.slice/pod3c2a_11.slice\n"
	if got != want {
		t.Errorf("%s", got)
	}
	for file, want := range map[string]string{"/var/log/*.log": "matches/", "/var/matches": "", "/va[r/x": ""} {
		if got := matches(fileOf("c", file).Command()); got != want {
			t.Errorf("%s: %q", file, got)
		}
	}
	for in, want := range map[string]string{"main:/a": "main /a", "/a:b": " /a:b", "a": " a", "c:rel": "c rel"} {
		if container, path := splitFile(in); container+" "+path != want {
			t.Errorf("%s: %q %q", in, container, path)
		}
	}
}
