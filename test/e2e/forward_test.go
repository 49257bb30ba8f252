// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestPortForward: kubectl port-forward reaches a pod's ports, with many connections and much data, over both protocols.
func TestPortForward(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("web", Tool("http"), Tool("tcp", "127.0.0.1:9000")))
	s.WaitReady("web")
	eachKubectl(t, s, func(t *testing.T, s *Space) {
		transports(t, s, func(t *testing.T, s *Space, env []string) {
			c := s.KubectlCommand("port-forward", "pod/web", ":8080", ":9000", ":7")
			c.Env = append(c.Env, env...)
			f := c.StartProcess()
			local := map[string]string{}
			text := f.Out.AwaitFunc("three ports", func(all string) bool { return strings.Count(all, "Forwarding from 127.0.0.1:") == 3 })
			for _, m := range regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+) -> (\d+)`).FindAllStringSubmatch(text, -1) {
				local[m[2]] = m[1]
			}
			if body, err := fetch(s.Context(), "http://"+local["8080"]+"/some/path"); err != nil || body != "hello from web at /some/path\n" {
				t.Errorf("GET: %q, %v", body, err)
			}
			large := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MiB
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					if err := echoed(s.Context(), "http://"+local["8080"]+"/echo", large); err != nil {
						t.Errorf("connection %d: %v", i, err)
					}
				})
			}
			wg.Wait()
			conn, err := net.Dial("tcp", local["9000"]) // the container listens on its own loopback only
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			buf := make([]byte, len("welcome to web\n"))
			if _, err := io.ReadFull(conn, buf); err != nil || string(buf) != "welcome to web\n" {
				t.Errorf("greeting %q, %v", buf, err)
			}
			// Nobody listens on 7: that connection ends with an error, the others go on. (kubectl of some versions gives up then.)
			if body, err := fetch(s.Context(), "http://"+local["7"]+"/"); err == nil {
				t.Errorf("a port on which nobody listens answered %q", body)
			}
			f.Err.Await("error forwarding port 7 to pod " + s.Namespace + "/web")
		})
	})
	s.KubectlFails("port-forward", "pod/nosuch", ":80").Says("not found")
}

func echoed(ctx context.Context, url string, data []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err == nil && !bytes.Equal(got, data) {
		err = fmt.Errorf("%d bytes came back of %d, or others", len(got), len(data))
	}
	return err
}

// TestProxy: the API server's proxy to a pod, as kubectl get --raw and kubectl proxy use it, and to the node.
func TestProxy(t *testing.T) {
	t.Parallel()
	s := shared(t)
	web := NewPod("web", Tool("http"), Tool("http", ":9999"))
	for i, port := range []int{8080, 9999} { // ready is when it listens
		web.Spec.Containers[i].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(port)}}}
	}
	s.Create(web)
	s.WaitReady("web")
	base := "/api/v1/namespaces/" + s.Namespace + "/pods/"
	s.Kubectl("get", "--raw", base+"web:8080/proxy/some/path").Is("hello from web at /some/path")
	s.Kubectl("get", "--raw", base+"http:web:9999/proxy/hostname").Is("web")
	s.KubectlFails("get", "--raw", base+"web:7/proxy/").Says("refused")
	s.KubectlFails("get", "--raw", base+"nosuch:7/proxy/").Says("not found")
	s.Kubectl("get", "--raw", "/api/v1/nodes/"+s.NodeName+"/proxy/healthz").Is("ok")
	s.Kubectl("get", "--raw", "/api/v1/nodes/"+s.NodeName+"/proxy/pods").Has(`"name":"web"`)
	s.Kubectl("get", "--raw", "/api/v1/nodes/"+s.NodeName+"/proxy/stats/summary").Has(`"nodeName"`, s.NodeName)
	s.Kubectl("get", "--raw", "/metrics").Has("apiserver_request_total")
	s.Kubectl("get", "--raw", "/version").Has("gitVersion")

	p := s.Start("proxy", "--port", "0")
	at := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(p.Out.Await("Starting to serve on 127.0.0.1:"))
	if body, err := fetch(s.Context(), "http://"+at+base+"web:8080/proxy/x"); err != nil || body != "hello from web at /x\n" {
		t.Errorf("through kubectl proxy: %q, %v", body, err)
	}
}
