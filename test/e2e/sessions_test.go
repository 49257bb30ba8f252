// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// TestSessionsOfOneUser: RS-01: a user who opens as many sessions as they can, of all sorts, is told to stop, and another one is served while
// those are open.
func TestSessionsOfOneUser(t *testing.T) {
	t.Parallel()
	const most = 8
	srv := own(t, ServerOptions{Args: []string{"--max-sessions-per-user", "8", "--max-sessions-per-namespace", "12"}})
	k := kitOn(t, srv)
	k.up(`{metadata: {name: app}, spec: {containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	k.Kubectl("create", "rolebinding", "edits", "--clusterrole", "edit", "--user", "eve", "--user", "ann", "--user", "joe")
	as := func(user string) *rest.Config {
		c := rest.CopyConfig(k.Config)
		c.Impersonate.UserName = user
		return c
	}
	ctx, leave := context.WithCancel(k.ctx())
	defer leave()
	var ended sync.WaitGroup
	session := func(user string, spdy bool) error {
		req := k.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(k.Namespace).Name("app").SubResource("exec").VersionedParams(
			&corev1.PodExecOptions{Command: []string{"sh", "-c", "echo up; sleep 4321; :"}, Stdout: true, Stderr: true}, scheme.ParameterCodec)
		e, err := remotecommand.NewWebSocketExecutor(as(user), http.MethodGet, req.URL().String())
		if spdy {
			e, err = remotecommand.NewSPDYExecutor(as(user), http.MethodPost, req.URL())
		}
		k.must(err)
		up, over := make(chan struct{}), make(chan error, 1)
		ended.Go(func() {
			over <- e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &firstWrite{done: func() { close(up) }}, Stderr: &strings.Builder{}})
		})
		select {
		case <-up:
			return nil
		case err := <-over:
			return err
		}
	}
	for i := range most {
		if err := session("eve", i%2 == 0); err != nil {
			t.Fatalf("session %d: %v", i, err)
		}
	}
	for _, spdy := range []bool{true, false} {
		if err := session("eve", spdy); err == nil || spdy && !strings.Contains(err.Error(), `user "eve" has 8 open sessions`) {
			t.Errorf("one more, spdy %v: %v", spdy, err)
		}
	}
	client, err := rest.HTTPClientFor(as("eve")) // one that does not try again by itself
	k.must(err)
	for _, what := range []string{"log", "attach?stdout=true", "portforward?ports=80", "proxy/"} {
		resp, err := client.Get(k.Config.Host + "/api/v1/namespaces/" + k.Namespace + "/pods/app/" + what)
		k.must(err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %s %v", what, resp.Status, resp.Header)
		}
	}
	for range 4 { // beside all of those
		k.must(session("ann", false))
	}
	if err := session("joe", true); err == nil || !strings.Contains(err.Error(), `has 12 open sessions`) {
		t.Errorf("one more in the namespace: %v", err)
	}
	k.Kubectl("exec", "app", "--", "echo", "hello").Is("hello") // the administrator's
	leave()
	ended.Wait()
	k.sh("app", "main", "pkill -f 'sleep 432[1]' || true")
}
