// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

// firstWrite tells that something was written.
type firstWrite struct {
	once sync.Once
	done func()
}

func (f *firstWrite) Write(p []byte) (int, error) {
	f.once.Do(f.done)
	return len(p), nil
}

// TestExecGone: RS-01 (ATTACK B13): a command goes on when the client of its exec has gone, but the server gives back the descriptors it
// had for it.
func TestExecGone(t *testing.T) {
	t.Parallel()
	srv := own(t)
	k := kitOn(t, srv)
	k.up(`{metadata: {name: app}, spec: {containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	k.exec("app", "main", "true") // opens what stays open
	fds := func() int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", srv.PID()))
		k.must(err)
		return len(entries)
	}
	before := fds()

	const clients = 30
	ctx, leave := context.WithCancel(k.ctx())
	defer leave()
	var connected, ended sync.WaitGroup
	for i := range clients {
		req := k.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(k.Namespace).Name("app").SubResource("exec").VersionedParams(
			&corev1.PodExecOptions{Command: []string{"sh", "-c", "echo up; sleep 4321; :"}, Stdin: i%3 == 0, Stdout: true, Stderr: true}, scheme.ParameterCodec)
		var e remotecommand.Executor
		var err error
		if i%2 == 0 {
			e, err = remotecommand.NewWebSocketExecutor(k.Config, http.MethodGet, req.URL().String())
		} else {
			e, err = remotecommand.NewSPDYExecutor(k.Config, http.MethodPost, req.URL())
		}
		k.must(err)
		connected.Add(1)
		o := remotecommand.StreamOptions{Stdout: &firstWrite{done: connected.Done}, Stderr: &strings.Builder{}}
		if i%3 == 0 {
			r, w, err := os.Pipe()
			k.must(err)
			t.Cleanup(func() { _, _ = r.Close(), w.Close() })
			o.Stdin = r
		}
		ended.Go(func() { _ = e.StreamWithContext(ctx, o) })
	}
	connected.Wait()
	leave()
	ended.Wait()
	// The server hears of it when the connections have been closed.
	for end := time.Now().Add(soon); fds() > before+clients/2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d descriptors before, %d after the clients of %d commands have gone", before, fds(), clients)
		}
	}
	if n := strings.Count(k.sh("app", "main", "ps -o args"), "sleep 4321"); n < 2*clients { // shell and sleep
		t.Errorf("%d of %d commands go on", n, clients)
	}
	k.sh("app", "main", "pkill -f 'sleep 432[1]' || true")
}
