// SPDX-License-Identifier: Apache-2.0

package kubelettest

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// Ways are the two protocols that clients speak, one of them also to a kubelet that speaks it itself.
func Ways() []string { return []string{"websocket", "spdy", Throughout} }

// Throughout is WebSocket up to the kubelet.
const Throughout = "websocket throughout"

// Executor runs a command in a pod, or attaches to it.
func (c *Cluster) Executor(t *testing.T, way, pod, sub string, opts runtime.Object) remotecommand.Executor {
	t.Helper()
	c.Kubelet.V5.Store(way == Throughout)
	cfg := &rest.Config{Host: c.URL}
	query, err := scheme.ParameterCodec.EncodeParameters(opts, schema.GroupVersion{Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(c.URL + "/api/v1/namespaces/default/pods/" + pod + "/" + sub + "?" + query.Encode())
	var e remotecommand.Executor
	if way == "spdy" {
		e, err = remotecommand.NewSPDYExecutor(cfg, http.MethodPost, u)
	} else {
		e, err = remotecommand.NewWebSocketExecutor(cfg, http.MethodGet, u.String())
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Context ends with the test, or after a minute.
func Context(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
