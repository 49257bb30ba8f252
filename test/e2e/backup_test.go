// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refusesToStart runs a server that must not start, and returns what it says and its exit code.
func refusesToStart(t *testing.T, srv *Server, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	cmd := srv.Wherry(ctx, append([]string{"server", "--data-dir", srv.DataDir, "--secure-port", "0", "--kubelet-port", "0"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Fatalf("the server started, or did not end: %v\n%s", err, out)
	}
	for _, trace := range []string{"goroutine ", "panic:", "fatal error"} {
		if strings.Contains(string(out), trace) {
			t.Errorf("a trace instead of words:\n%s", out)
		}
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// manage runs a command that must end well.
func (k *kit) manage(args ...string) string {
	k.t.Helper()
	out, err := k.Server.Wherry(context.Background(), args...).CombinedOutput()
	if err != nil {
		k.t.Fatalf("wherry %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// RS-14, RS-07, RS-08: a backup taken while pods run, a store that is damaged afterwards, and the way back that the refusal names: the pods go
// on as they were, containers and all, and what came after the backup is gone.
// ATTACK C10.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	srv := own(t)
	k := kitOn(t, srv)
	before := facts(k.up("metadata: {name: web}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}"))
	k.configMap("before", map[string]string{"a": "b"})
	file := filepath.Join(t.TempDir(), "wherry.tar.gz")
	k.manage("backup", "--data-dir", srv.DataDir, "-o", file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup's mode: %v, %v", info.Mode(), err)
	}
	k.configMap("after", map[string]string{"a": "b"})
	k.must(srv.Stop())

	wals, err := filepath.Glob(filepath.Join(srv.DataDir, "etcd/member/wal/*.wal"))
	k.must(err)
	for _, f := range wals {
		k.must(os.Remove(f))
	}
	words, code := refusesToStart(t, srv)
	database := filepath.Join(srv.DataDir, "etcd/member/snap/db")
	if code != 16 || !strings.Contains(words, "wherry restore --data-dir "+srv.DataDir+" --force "+database) {
		t.Errorf("exit code %d:\n%s", code, words)
	}
	has := func(name string, want bool) {
		t.Helper()
		_, err := k.Client.CoreV1().ConfigMaps(k.Namespace).Get(k.ctx(), name, metav1.GetOptions{})
		if err == nil != want || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("configmap %s: %v, want it: %v", name, err, want)
		}
	}
	same := func() {
		t.Helper()
		if now := facts(k.Get("web")); now != before {
			t.Errorf("the pod is not as it was:\n%s\nbefore:\n%s", now, before)
		}
		k.says("web", "c", "echo here", "here")
	}
	k.manage("restore", "--data-dir", srv.DataDir, "--force", database)
	k.again()
	has("before", true)
	has("after", true)
	same()

	k.must(srv.Stop())
	k.manage("restore", "--data-dir", srv.DataDir, "--force", file)
	k.again()
	has("before", true)
	has("after", false)
	same()
}

// RS-07, RS-14: running pods are never ended because the store is empty, or in an older state: the start is refused until somebody says what
// is to become of them, and they can be had back as they were.
// ATTACK C14.
func TestPodsThatTheStoreDoesNotKnow(t *testing.T) {
	t.Parallel()
	srv := own(t)
	k := kitOn(t, srv)
	k.Kubectl("label", "namespace", k.Namespace, "pod-security.kubernetes.io/enforce=baseline", "team=shop")
	web := k.up("metadata: {name: web}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	before, err := strconv.ParseInt(web.ResourceVersion, 10, 64)
	k.must(err)
	k.must(srv.Stop())
	entries, err := filepath.Glob(filepath.Join(srv.DataDir, "etcd", "*"))
	k.must(err)
	for _, e := range entries {
		k.must(os.RemoveAll(e))
	}
	for range 2 { // the refusal is the same the next time
		words, code := refusesToStart(t, srv)
		if code != 16 || !strings.Contains(words, k.Namespace+"/web") || !strings.Contains(words, "--adopt") || !strings.Contains(words, "--forget") {
			t.Fatalf("exit code %d:\n%s", code, words)
		}
	}
	srv.opts.Args = append(srv.opts.Args, "--adopt")
	k.again()
	now, err := k.Client.CoreV1().Pods(k.Namespace).Get(k.ctx(), "web", metav1.GetOptions{})
	k.must(err)
	if now.UID != web.UID || facts(now) != facts(web) {
		t.Errorf("the pod is not as it was:\n%s\nbefore:\n%s", facts(now), facts(web))
	}
	k.says("web", "c", "echo here", "here")
	ns, err := k.Client.CoreV1().Namespaces().Get(k.ctx(), k.Namespace, metav1.GetOptions{})
	k.must(err)
	if ns.Labels["pod-security.kubernetes.io/enforce"] != "baseline" || ns.Labels["team"] != "shop" {
		t.Errorf("the namespace's labels: %v", ns.Labels)
	}
	if v, err := strconv.ParseInt(now.ResourceVersion, 10, 64); err != nil || v <= before {
		t.Errorf("revision %s after %d: time goes back for who watched", now.ResourceVersion, before)
	}
	srv.opts.Args = srv.opts.Args[:len(srv.opts.Args)-1]

	// An older state: of a store that knows web and not later.
	file := filepath.Join(t.TempDir(), "wherry.tar.gz")
	k.manage("backup", "--data-dir", srv.DataDir, "-o", file)
	later := k.up("metadata: {name: later}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	k.must(srv.Stop())
	k.manage("restore", "--data-dir", srv.DataDir, "--force", file)
	words, code := refusesToStart(t, srv)
	if code != 16 || !strings.Contains(words, k.Namespace+"/later") || strings.Contains(words, k.Namespace+"/web") {
		t.Fatalf("exit code %d:\n%s", code, words)
	}
	srv.opts.Args = append(srv.opts.Args, "--forget")
	k.again()
	k.AwaitNoTrace(later)
	if now, err := k.Client.CoreV1().Pods(k.Namespace).Get(k.ctx(), "web", metav1.GetOptions{}); err != nil || facts(now) != facts(web) {
		t.Errorf("the pod is not as it was: %v\n%s", err, facts(now))
	}
}
