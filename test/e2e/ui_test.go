// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// UI-02 UI-03 UI-05: `wherry ui` prints a link that signs in once; by it a browser lists pods, watches one come up,
// reads its log and runs a command in it, with the rights of the kubeconfig and the server's own words where those end.
// It ends well while a watch is open.
func TestUI(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	if _, err := k.Client.CoreV1().RESTClient().Get().AbsPath("/ui/").DoRaw(k.ctx()); !apierrors.IsNotFound(err) {
		t.Errorf("/ui/ of a server without --ui: %v", err)
	}
	link, cmd := k.Open()
	b := Follow(t, link)
	stranger := &Browser{T: t, Base: b.Base}
	if text := stranger.Text(http.StatusForbidden, "GET", strings.TrimPrefix(link, b.Base), ""); !strings.Contains(text,
		"has been used") {
		t.Errorf("the link, again: %s", text)
	}
	stranger.Text(http.StatusUnauthorized, "GET", "/ui/k8s/api/v1/pods", "")
	if text := b.Text(http.StatusOK, "GET", "/ui/session", ""); !strings.Contains(text, `"user":"wherry-admin"`) ||
		!strings.Contains(text, k.Kubeconfig) || !strings.Contains(text, `"namespace":"`+k.Namespace+`"`) {
		t.Error(text)
	}
	next := b.Pods(k.Namespace)
	k.up(`{metadata: {name: web}, spec: {containers: [{name: main, command: [sh, -c, "echo hello; IDLE"]}]}}`)
	next(func(p *corev1.Pod) bool { return p.Name == "web" && p.Status.Phase == corev1.PodPending })
	next(func(p *corev1.Pod) bool { return p.Name == "web" && p.Status.Phase == corev1.PodRunning })
	pods := "/ui/k8s/api/v1/namespaces/" + k.Namespace + "/pods"
	if text := b.Text(http.StatusOK, "GET", pods, ""); !strings.Contains(text, `"name":"web"`) {
		t.Errorf("the list: %.300s", text)
	}
	line, err := bufio.NewReader(b.Do("GET", pods+"/web/log?follow=true", "").Body).ReadString('\n')
	if line != "hello\n" {
		t.Errorf("the log: %q, %v", line, err)
	}
	for path, says := range map[string]string{pods + "?watch=true": `{"type":"ADDED",`,
		pods + "/web/log?follow=true": "hello\n"} {
		socket := b.Socket(path) // a browser has six connections for what is not one
		_, text, err := socket.ReadMessage()
		for err == nil && len(text) == 0 { // as a log begins
			_, text, err = socket.ReadMessage()
		}
		if err != nil || !strings.HasPrefix(string(text), says) {
			t.Errorf("%s by WebSocket: %v %.60q", path, err, text)
		}
		socket.Close()
	}
	if out := b.Exec(k.Namespace, "web", "sh", "-c", "echo there; hostname"); out != "there\nweb\n" {
		t.Errorf("a command printed %q", out)
	}
	b.Text(http.StatusForbidden, "GET", pods+"/web/proxy/", "")

	file := filepath.Join(t.TempDir(), "jane.yaml")
	k.told("kubeconfig", "--user", "jane", "--group", k.Namespace+"-lookers", "--ttl", "1h", "--server", k.Config.Host,
		"-o", file)
	k.Kubectl("create", "rolebinding", "lookers", "--clusterrole", "view", "--group", k.Namespace+"-lookers")
	janes, janesCmd := k.Open("--kubeconfig", file)
	jane := Follow(t, janes)
	jane.Text(http.StatusOK, "GET", pods, "")
	if text := jane.Text(http.StatusForbidden, "DELETE", pods+"/web", ""); !strings.Contains(text,
		`pods \"web\" is forbidden: User \"jane\" cannot delete resource \"pods\" in API group \"\" in the namespace \"`+k.Namespace+`\"`) {
		t.Error(text)
	}
	jane.Text(http.StatusForbidden, "GET", pods+"/web/exec?command=id&stdout=true", "")
	jane.Cookie = b.Cookie
	jane.Text(http.StatusUnauthorized, "GET", pods, "") // one page's session is nothing to another

	shell := b.Shell(k.Namespace, "web", "sh")
	defer shell.Close()
	cmd.Interrupt(syscall.SIGTERM) // the watch and the shell are open
	janesCmd.Interrupt(syscall.SIGINT)
}

// UI-02 UI-03 UI-05: `wherry server --ui` serves the page on its own port, to those who have a token and as them; a
// shell ends with its session. A page of `wherry ui` comes through a restart of the server.
func TestUIOfServer(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	srv := own(t, ServerOptions{Args: []string{"--ui"}})
	k := kitOn(t, srv)
	k.up(`{metadata: {name: web}, spec: {containers: [{name: main, command: [sh, -c, "echo hello; IDLE"]}]}}`)
	k.WaitReady("web")
	k.Kubectl("create", "serviceaccount", "looker")
	k.Kubectl("create", "rolebinding", "lookers", "--clusterrole", "edit", "--serviceaccount", k.Namespace+":looker")
	token := strings.TrimSpace(k.Kubectl("create", "token", "looker").Out)
	b := &Browser{T: t, Base: k.Config.Host}
	if text := b.Text(http.StatusUnauthorized, "GET", "/ui/session", ""); !strings.Contains(text, `"signIn":"token"`) {
		t.Error(text)
	}
	if text := b.Text(http.StatusOK, "GET", "/ui/", ""); !strings.Contains(text, "<!doctype html>") {
		t.Errorf("the page: %.200s", text)
	}
	b.Text(http.StatusUnauthorized, "POST", "/ui/session", `{"token": "wrong"}`)
	b.take(b.Do("POST", "/ui/session", `{"token": "`+token+`"}`), http.StatusNoContent)
	who := "system:serviceaccount:" + k.Namespace + ":looker"
	if text := b.Text(http.StatusOK, "GET", "/ui/session", ""); !strings.Contains(text, `"user":"`+who+`"`) {
		t.Error(text)
	}
	pods := "/ui/k8s/api/v1/namespaces/" + k.Namespace + "/pods"
	b.Pods(k.Namespace)(func(p *corev1.Pod) bool { return p.Name == "web" })
	line, err := bufio.NewReader(b.Do("GET", pods+"/web/log?follow=true", "").Body).ReadString('\n')
	if line != "hello\n" {
		t.Errorf("the log: %q, %v", line, err)
	}
	if text := b.Text(http.StatusForbidden, "GET", "/ui/k8s/api/v1/nodes", ""); !strings.Contains(text,
		`User \"`+who+`\" cannot list resource \"nodes\"`) {
		t.Error(text)
	}
	if out := b.Exec(k.Namespace, "web", "echo", "there"); out != "there\n" {
		t.Errorf("a command printed %q", out)
	}
	if text, err := srv.Wherry(k.ctx(), "audit", "--user", who).CombinedOutput(); err != nil ||
		!strings.Contains(string(text), "web") {
		t.Errorf("the record of what the page did: %v: %s", err, text)
	}
	shell := b.Shell(k.Namespace, "web", "sh")
	defer shell.Close()
	b.Text(http.StatusNoContent, "DELETE", "/ui/session", "")
	if err := shell.SetReadDeadline(time.Now().Add(Timeout)); err != nil {
		t.Fatal(err)
	}
	for {
		_, _, err := shell.ReadMessage()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the shell outlives its session")
		}
		if err != nil {
			break // the shell is gone with its session
		}
	}
	b.Text(http.StatusUnauthorized, "GET", pods, "")

	link, cmd := k.Open()
	page := Follow(t, link)
	page.Text(http.StatusOK, "GET", pods, "")
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	if text := page.Text(http.StatusBadGateway, "GET", pods, ""); !strings.Contains(text, "does not respond") {
		t.Errorf("a server that is gone: %s", text)
	}
	page.Text(http.StatusOK, "GET", "/ui/session", "")
	srv.opts.Args = append(srv.opts.Args, "--secure-port", k.Config.Host[strings.LastIndexByte(k.Config.Host, ':')+1:])
	if err := srv.Start(k.ctx()); err != nil {
		t.Fatal(err)
	}
	page.Pods(k.Namespace)(func(p *corev1.Pod) bool { return p.Name == "web" })
	cmd.Interrupt(syscall.SIGINT)
}
