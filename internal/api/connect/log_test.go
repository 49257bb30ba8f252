// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	authnuser "k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// TestLog proves the API server's part of PL-09.
func TestLog(t *testing.T) {
	c := newCluster(t)
	c.Kubelet.Logs = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("previous") == "true" {
			http.Error(w, `previous terminated container "main" in pod "plain" not found`, http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "%s %s", r.URL.Path, r.URL.Query().Encode())
	}
	for _, tc := range []struct {
		name, request string
		code          int
		want          string
	}{
		{"the only container", "plain/log", 200, "/containerLogs/default/plain/main "},
		{"every option", "many/log?container=setup&follow=true&timestamps=true&sinceSeconds=5&tailLines=3&limitBytes=10&stream=All", 200,
			"/containerLogs/default/many/setup follow=true&limitBytes=10&sinceSeconds=5&tailLines=3&timestamps=true"},
		{"since a time", "plain/log?sinceTime=2026-01-01T10:00:00Z", 200, "/containerLogs/default/plain/main sinceTime=2026-01-01T10%3A00%3A00Z"},
		{"one stream", "plain/log?stream=Stderr", 200, "/containerLogs/default/plain/main stream=Stderr"},
		{"without checking the kubelet's certificate", "plain/log?insecureSkipTLSVerifyBackend=true", 200, "/containerLogs/default/plain/main "},
		{"not scheduled: nothing yet", "homeless/log", 204, ""},
		{"several containers", "many/log", 400, "a container name must be specified for pod many, choose one of: [a b] or one of the init containers: [setup]"},
		{"no such container", "plain/log?container=x", 400, "container x is not valid for pod plain"},
		{"no such pod", "none/log", 404, `pods \"none\" not found`},
		{"the kubelet's own refusal", "plain/log?previous=true", 400, `previous terminated container \"main\" in pod \"plain\" not found`},
		{"dead node", "lost/log", 503, `cannot reach the kubelet of node \"dead\"`},
		{"negative tail", "plain/log?tailLines=-1", 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"},
		{"no bytes", "plain/log?limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than 0"},
		{"future", "plain/log?sinceSeconds=0", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"},
		{"two times", "plain/log?sinceSeconds=1&sinceTime=2026-01-01T10:00:00Z", 422, "at most one of `sinceTime` or `sinceSeconds` may be specified"},
		{"no such stream", "plain/log?stream=x", 422, `stream: Unsupported value: \"x\"`},
		{"tail of a stream", "plain/log?stream=Stdout&tailLines=1", 422, "mutually exclusive"},
		{"not a number", "plain/log?tailLines=many", 400, "query parameter tailLines"},
	} {
		t.Run("PL-09 "+tc.name, func(t *testing.T) {
			code, body := fetch(t, c.URL+"/api/v1/namespaces/default/pods/"+tc.request)
			if code != tc.code || !strings.Contains(body, tc.want) {
				t.Errorf("%d %s\nwant %d %s", code, body, tc.code, tc.want)
			}
		})
	}
	t.Run("PL-09 following ends when the client leaves", func(t *testing.T) {
		left := make(chan struct{})
		c.Kubelet.Logs = func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, "first")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			close(left)
		}
		resp, err := http.Get(c.URL + "/api/v1/namespaces/default/pods/plain/log?follow=true")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		<-left
	})
}

// EC-16: the node is told who reads a log, and who attaches, so that nobody is shown a log twice.
func TestReaderIsTold(t *testing.T) {
	ctx := request.WithUser(t.Context(), &authnuser.DefaultInfo{Name: "jane"})
	if got := withReader(ctx, url.Values{"tty": {"1"}}).Encode(); got != "reader=jane&tty=1" {
		t.Errorf("%q", got)
	}
	if got := withReader(t.Context(), url.Values{}).Encode(); got != "" {
		t.Errorf("of nobody: %q", got)
	}
	node, err := url.Parse("https://node")
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "main"}}}}
	l := NewLog(func(context.Context, string) (*corev1.Pod, error) { return pod, nil },
		func(context.Context, string) (*url.URL, http.RoundTripper, error) {
			return node, http.DefaultTransport, nil
		})
	out, err := l.Get(ctx, "web", &corev1.PodLogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := out.(*logStream); !ok || s.Location.Query().Get("reader") != "jane" {
		t.Errorf("%+v", out)
	}
}
