// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/remotecommand"
	watchtools "k8s.io/client-go/tools/watch"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/test/images"
)

// execQuery makes a request on pods/exec with a query of the test's own.
func (k *kit) execQuery(pod string, q url.Values, stdin string) (stdout string, code int, err error) {
	k.t.Helper()
	u := k.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(k.Namespace).Name(pod).SubResource("exec").URL()
	q.Set("stdout", "true")
	if stdin != "" {
		q.Set("stdin", "true")
	}
	u.RawQuery = q.Encode()
	e, err := remotecommand.NewWebSocketExecutor(k.Config, http.MethodGet, u.String())
	k.must(err)
	var out bytes.Buffer
	o := remotecommand.StreamOptions{Stdout: &out, Tty: q.Get("tty") == "true"}
	if stdin != "" {
		o.Stdin = strings.NewReader(stdin)
	}
	err = e.StreamWithContext(k.ctx(), o)
	var exit utilexec.CodeExitError
	if errors.As(err, &exit) {
		return out.String(), exit.Code, nil
	}
	return out.String(), 0, err
}

// debug makes a debug container by exec++ and returns what it said.
func (k *kit) debug(pod, name, script string, more ...string) (string, error) {
	k.t.Helper()
	q := url.Values{debugask.ParamName: {name}, debugask.ParamImage: {images.BusyboxRef}, "command": {"sh", "-c", script}}
	for i := 0; i+1 < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	out, _, err := k.execQuery(pod, q, "")
	return out, err
}

// runs waits until the records of a pod are as a test wants them.
func (k *kit) runs(pod, what string, until func([]debugrun.DebugRun) bool) []debugrun.DebugRun {
	k.t.Helper()
	c, err := debugrun.NewClient(k.Config)
	k.must(err)
	var last []debugrun.DebugRun
	_, err = watchtools.UntilWithSync(k.ctx(), c.ListWatch(), &debugrun.DebugRun{}, func(cache.Store) (bool, error) {
		list, err := c.List(k.ctx(), k.Namespace, debugrun.OfPod(pod))
		if err != nil {
			return false, err
		}
		last = list.Items
		return until(last), nil
	}, func(watch.Event) (bool, error) {
		list, err := c.List(k.ctx(), k.Namespace, debugrun.OfPod(pod))
		if err != nil {
			return false, err
		}
		last = list.Items
		return until(last), nil
	})
	if err != nil {
		k.t.Fatalf("records of pod %s are not %s: %v: %+v", pod, what, err, last)
	}
	return last
}

func allFinished(n int) func([]debugrun.DebugRun) bool {
	return func(runs []debugrun.DebugRun) bool {
		for _, r := range runs {
			if r.Status.FinishedAt == nil {
				return false
			}
		}
		return len(runs) == n
	}
}

// DC-03 DC-06 DC-08 DC-15 EC-16 IX-08: one request makes a debug container of a real pod and gives all it says; its name is used
// again; it is stopped by DELETE; each run is on record with its exit code.
func TestDebugRequest(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`{metadata: {name: p}, spec: {containers: [{name: main, command: [sh, -c, IDLE]}]}}`)

	out, err := k.debug("p", "debug", "echo first; ls /proc/1/exe >/dev/null && echo sees; exit 3")
	if err != nil || out != "first\nsees\n" {
		t.Fatalf("%q, %v", out, err)
	}
	runs := k.runs("p", "one that ended", allFinished(1))
	if s := runs[0].Status; s.ExitCode == nil || *s.ExitCode != 3 || s.StartedAt == nil || runs[0].Spec.Target != "main" {
		t.Errorf("record %+v", runs[0])
	}
	out, err = k.debug("p", "debug", "echo again")
	if err != nil || out != "again\n" {
		t.Fatalf("%q, %v", out, err)
	}
	pod := k.Wait("p", "has ended twice", func(p *corev1.Pod) bool {
		s := p.Status.EphemeralContainerStatuses
		return len(s) == 1 && s[0].RestartCount == 1 && s[0].State.Terminated != nil && s[0].LastTerminationState.Terminated != nil
	})
	if last := pod.Status.EphemeralContainerStatuses[0].LastTerminationState.Terminated; last.ExitCode != 3 {
		t.Errorf("the first run is remembered as %+v", last)
	}
	k.runs("p", "two that ended", allFinished(2))

	began := make(chan error, 1)
	go func() {
		_, err := k.debug("p", "debug", "echo up; sleep 1000", "tty", "true")
		began <- err
	}()
	k.Wait("p", "runs a third time", func(p *corev1.Pod) bool {
		s := p.Status.EphemeralContainerStatuses
		return s[0].RestartCount == 2 && s[0].State.Running != nil
	})
	if _, err := k.debug("p", "debug", "true"); err == nil || !strings.Contains(err.Error(), "is running: attach to it") {
		t.Errorf("a name in use: %v", err)
	}
	k.Kubectl("delete", "--raw", "/api/v1/namespaces/"+k.Namespace+"/pods/p/debug/debug").Has("is stopped")
	<-began // its streams end with it
	runs = k.runs("p", "three that ended", allFinished(3))
	if len(runs) != 3 {
		t.Errorf("%d records", len(runs))
	}
	k.Kubectl("get", "debugruns").Has("EphemeralContainer", "debug", "main")
	k.Kubectl("describe", "pod", "p").Has("DebugContainerAdded", "wherry.dev/Tainted")
	k.Delete("p")
	k.runs("p", "there after the pod", allFinished(3))
}

// DC-03 DC-05: a debug container that cannot start is refused at once, in the node's words, and its name is free again.
func TestDebugRequestRefused(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`{metadata: {name: p}, spec: {containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	for _, c := range []struct {
		what, image, command, reason, words, code string
	}{
		{"no such image", "registry.invalid/none:1", "true", "ErrImagePull", "registry.invalid", ""},
		{"no such command", images.BusyboxRef, "/no/such/thing", "StartError", "no such file", "127"},
		{"a folder as command", images.BusyboxRef, "/etc", "StartError", "is a directory", "126"},
	} {
		q := url.Values{debugask.ParamName: {"d"}, debugask.ParamImage: {c.image}, "command": {c.command}}
		began := time.Now()
		_, _, err := k.execQuery("p", q, "")
		status := refusalOf(t, err)
		if string(status.Reason) != c.reason || !strings.Contains(status.Message, c.words) || exitCause(status) != c.code {
			t.Errorf("%s, after %s: %+v", c.what, time.Since(began), status)
		}
		k.Wait("p", "has given up "+c.what, func(p *corev1.Pod) bool {
			s := p.Status.EphemeralContainerStatuses
			return len(s) == 1 && s[0].State.Terminated != nil
		})
	}
	if out, err := k.debug("p", "d", "echo free"); err != nil || out != "free\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func refusalOf(t *testing.T, err error) metav1.Status {
	t.Helper()
	var upgrade *httpstream.UpgradeFailureError
	if errors.As(err, &upgrade) {
		err = upgrade.Cause
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		t.Fatalf("not a Status: %T %v", err, err)
	}
	return status.ErrStatus
}

func exitCause(s metav1.Status) string {
	if s.Details != nil && len(s.Details.Causes) > 0 && s.Details.Causes[0].Type == debugask.CauseExitCode {
		return s.Details.Causes[0].Message
	}
	return ""
}

// IX-01 IX-05 IX-08: image exec through the API server, with its exit code handed on and on record.
func TestImageExecRequest(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`{metadata: {name: p}, spec: {containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	q := url.Values{debugask.ParamExecImage: {images.BusyboxRef}, "container": {"main"}, "command": {"sh", "-c", "cat; ls /c; exit 5"}}
	out, code, err := k.execQuery("p", q, "hello\n")
	if err != nil || code != 5 || out != "hello\nmain\n" {
		t.Fatalf("%q, %d, %v", out, code, err)
	}
	runs := k.runs("p", "one that ended", allFinished(1))
	if s := runs[0]; s.Spec.Kind != debugrun.ImageExec || s.Status.ExitCode == nil || *s.Status.ExitCode != 5 {
		t.Errorf("record %+v", s)
	}
	if len(k.Get("p").Spec.EphemeralContainers) > 0 {
		t.Error("it is in the spec")
	}
	k.Kubectl("describe", "pod", "p").Has("ImageExec")
}
