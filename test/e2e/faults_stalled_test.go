// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/test/images"
)

// deaf is a client that takes nothing after the first word.
type deaf struct {
	heard func()
	until <-chan struct{}
}

func (d *deaf) Write(p []byte) (int, error) {
	d.heard()
	<-d.until
	return len(p), nil
}

// TestStalledClients: RS-01, RS-05: clients that stop reading what they follow, of logs, an exec, a debug session and an image exec, make the
// programs wait that write for them alone, and the server keeps none of what they do not take; others are served. Numbers near the largest
// of all mean all of a log.
// ATTACK B3, B6.
func TestStalledClients(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	srv := own(t, ServerOptions{Args: []string{"--container-log-max-size", "100Mi"}}) // else its end may be all that is read
	k := kitOn(t, srv)
	const written = 20_000_000
	k.up(fmt.Sprintf("metadata: {name: app}\nspec: {containers: [{name: main, command: [sh, -c, 'echo first; yes $(printf %%0999d 1) | head -c %d; echo; echo last; IDLE']}]}", written))
	k.awaitLog("app", "main", "last")
	before := srv.resident(t)

	ctx, leave := context.WithCancel(k.ctx())
	var sessions, begun sync.WaitGroup
	defer sessions.Wait()
	defer leave()
	stall := func(session func(out *deaf)) {
		begun.Add(1)
		out := &deaf{heard: sync.OnceFunc(begun.Done), until: ctx.Done()}
		sessions.Go(func() {
			session(out)
			out.heard() // so that a failure does not hang the test
		})
	}
	for range 8 {
		follow, err := k.Client.CoreV1().Pods(k.Namespace).GetLogs("app", &corev1.PodLogOptions{Follow: true}).Stream(ctx)
		k.must(err)
		defer follow.Close()
	}
	endless := func(name string) []string { return []string{"sh", "-c", "echo begun; exec cat /dev/zero " + name} }
	exec := func(query url.Values) func(*deaf) {
		return func(out *deaf) {
			u := k.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(k.Namespace).Name("app").SubResource("exec").URL()
			u.RawQuery = query.Encode()
			e, err := remotecommand.NewWebSocketExecutor(k.Config, "GET", u.String())
			if err == nil {
				err = e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: out})
			}
			if ctx.Err() == nil {
				t.Errorf("a session ended by itself: %v", err)
			}
		}
	}
	stall(exec(url.Values{"stdout": {"true"}, "command": endless("exec-stalled")}))
	stall(exec(url.Values{"stdout": {"true"}, debugask.ParamName: {"deaf"}, debugask.ParamImage: {images.BusyboxRef},
		"command": {"sh", "-c", fmt.Sprintf("echo begun; yes $(printf %%0999d 2) | head -c %d; %s", written, Idle)}}))
	stall(func(out *deaf) {
		_, _ = k.start("app", imageExec{image: images.BusyboxRef, command: endless("image-stalled"), stdout: out, ctx: ctx})
	})
	begun.Wait()
	for _, writer := range []string{"cat /dev/zero exec-stalled", "cat /dev/zero image-stalled"} {
		awaitStalled(t, srv, writer)
	}
	k.says("app", "main", "echo here", "here")
	if _, err := k.Client.CoreV1().Pods(k.Namespace).List(k.ctx(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	// What eight followers and a debug session do not take is 180 MB; what an endless program would write has no bound.
	const most = 100 << 20
	if now := srv.resident(t); now > before+most {
		t.Errorf("B6 the server holds %d MB, %d MB before", now>>20, before>>20)
	} else {
		t.Logf("the server holds %d MB, %d MB before", now>>20, before>>20)
	}
	leave()
	sessions.Wait()

	all := k.logWith(&corev1.PodLogOptions{})
	for what, o := range map[string]*corev1.PodLogOptions{
		"lines": {TailLines: ptr.To[int64](math.MaxInt64)}, "bytes": {LimitBytes: ptr.To[int64](math.MaxInt64)}, "seconds": {SinceSeconds: ptr.To[int64](math.MaxInt64)},
	} {
		if got := k.logWith(o); !bytes.Equal(got, all) {
			t.Errorf("B3 2^63-1 %s of a log of %d bytes are %d bytes", what, len(all), len(got))
		}
	}
}

func (k *kit) logWith(o *corev1.PodLogOptions) []byte {
	k.t.Helper()
	text, err := k.Client.CoreV1().RESTClient().Get().Namespace(k.Namespace).Resource("pods").Name("app").SubResource("log").
		VersionedParams(o, scheme.ParameterCodec).DoRaw(k.ctx())
	k.must(err)
	return text
}

// resident is the memory of the server process in bytes.
func (s *Server) resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	kb, err := strconv.Atoi(strings.Fields(between(string(text), "VmRSS:", "\n"))[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// awaitStalled waits until a program of a server's pods has begun to write and writes no more: nobody tells of that, so it looks.
func awaitStalled(t *testing.T, s *Server, command string) {
	t.Helper()
	f := footprint{dataDir: s.DataDir}
	for deadline, last := time.Now().Add(Timeout), ""; time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		lines, err := processesWith(f.dataDir+"/", f.cgroupRoot())
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			text, is, _ := strings.Cut(strings.TrimPrefix(line, "process "), ": ")
			if !strings.HasPrefix(is, command) {
				continue
			}
			io, err := os.ReadFile("/proc/" + text + "/io")
			if now := between(string(io), "wchar: ", "\n"); err == nil && now != "0" && now == last {
				return
			} else {
				last = now
			}
		}
	}
	t.Fatalf("%s goes on writing to a client that takes nothing, or did not begin", command)
}
