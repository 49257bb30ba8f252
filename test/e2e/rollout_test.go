// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/wherryproject/wherry/test/images"
)

// load asks for a URL without end, over a new connection each time, and counts.
type load struct {
	sent, lost atomic.Int64
	first      sync.Once
	how        error // the first that was lost
	cancel     context.CancelFunc
	wait       sync.WaitGroup
}

// loadOn has clients ask for a URL, each some 400 times a second.
func loadOn(url string, clients int) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{cancel: cancel}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for range clients {
		l.wait.Go(func() {
			pace := time.NewTicker(2500 * time.Microsecond)
			defer pace.Stop()
			for ctx.Err() == nil {
				l.ask(client, url)
				<-pace.C
			}
		})
	}
	return l
}

func (l *load) ask(client *http.Client, url string) {
	n := l.sent.Add(1)
	resp, err := client.Get(url)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %s", resp.Status)
		}
	}
	if err != nil {
		l.lost.Add(1)
		l.first.Do(func() { l.how = fmt.Errorf("request %d: %w", n, err) })
	}
}

// end ends it when at least n requests were made.
func (l *load) end(n int64) {
	for l.sent.Load() < n {
		time.Sleep(10 * time.Millisecond) // a counter tells nobody
	}
	l.cancel()
	l.wait.Wait()
}

// awaitUpdate waits until a Deployment has a pod of its newest template. It may have more by then, where this process is slow.
func (k *kit) awaitUpdate(name string) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.ctx(), Timeout)
	defer cancel()
	lw := cache.NewListWatchFromClient(k.Client.AppsV1().RESTClient(), "deployments", k.Namespace,
		fields.OneTermEqualSelector("metadata.name", name))
	_, err := watchtools.UntilWithSync(ctx, lw, &appsv1.Deployment{}, nil, func(e watch.Event) (bool, error) {
		d, ok := e.Object.(*appsv1.Deployment)
		return ok && d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas > 0, nil
	})
	k.must(err)
}

// SC-26, WL-10, WL-12, WL-22: a rolling update of pods whose sidecar serves, and whose main takes its time in a preStop hook, loses no request of 20,000
// through a Service: a pod that ends serves until its main has ended. Nor does one in the middle of which the server is killed. The last
// pods serve until they have ended.
func TestRollingUpdateLosesNothing(t *testing.T) {
	t.Parallel()
	srv := own(t, ServerOptions{Args: []string{"--service-cidr", "10.98.81.0/24"}})
	k := inDefault(t, srv)
	k.objects(strings.NewReplacer("IDLE", Idle, "BUSYBOX", images.BusyboxRef, "TOOL", images.ToolRef).Replace(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers:
      - {name: proxy, image: TOOL, restartPolicy: Always, args: [http, ":8080"], readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}}
      containers:
      - {name: main, image: BUSYBOX, command: [sh, -c, "IDLE"], lifecycle: {preStop: {sleep: {seconds: 3}}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: 10.98.81.80, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`))
	k.Kubectl("rollout", "status", "deployment/web", "--timeout=90s")
	url := "http://10.98.81.80/hostname"
	k.asks(url, func(answer string, err error) bool { return err == nil && strings.HasPrefix(answer, "web-") })

	l := loadOn(url, 4)
	k.Kubectl("rollout", "restart", "deployment/web")
	k.Kubectl("rollout", "status", "deployment/web", "--timeout=120s")
	k.Kubectl("rollout", "restart", "deployment/web")
	k.awaitUpdate("web")
	srv.Kill()
	k.must(srv.Start(k.ctx()))
	k.Kubectl("rollout", "status", "deployment/web", "--timeout=120s")
	l.end(20_000)
	t.Logf("%d requests", l.sent.Load())
	if n := l.lost.Load(); n > 0 {
		t.Errorf("SC-26 %d of %d requests were lost; %v", n, l.sent.Load(), l.how)
	}

	k.Kubectl("scale", "deployment/web", "--replicas=0")
	k.Kubectl("wait", "pod", "-l", "app=web", "--for=jsonpath={.metadata.deletionTimestamp}", "--timeout=10s")
	if answer, err := fetch(k.ctx(), url); err != nil || !strings.HasPrefix(answer, "web-") {
		t.Errorf("WL-10 pods that end serve while no other is there: %q, %v", answer, err)
	}
	k.asks(url, refused)
}
