// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/podspec"
)

// debugServer is a server with one pod, web, that answers requests for a debug container as exec does.
type debugServer struct {
	pod  *corev1.Pod
	log  string
	exec func(w http.ResponseWriter, r *http.Request)
	// next is what a watch of the pod tells, after which it goes on for ever; every state is also what a later request finds.
	next []*corev1.Pod
}

// kubeconfig serves it until the test ends.
func (d *debugServer) kubeconfig(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
			_, _ = io.WriteString(w, `{"gitVersion":"v1.37.2+wherry"}`)
		case "/api/v1/namespaces/default/pods/web":
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(d.pod)
		case "/api/v1/namespaces/default/pods":
			w.Header().Set("Content-Type", "application/json")
			for _, p := range d.next {
				d.pod = p
				data, _ := json.Marshal(p)
				_ = json.NewEncoder(w).Encode(metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: data}})
			}
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "/api/v1/namespaces/default/pods/web/log":
			_, _ = io.WriteString(w, d.log)
		case "/api/v1/namespaces/default/pods/web/exec", "/api/v1/namespaces/default/pods/web/attach":
			d.exec(w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"kind":"Config","apiVersion":"v1","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}]}`, srv.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// refusing answers with a Status.
func refusing(code int, reason metav1.StatusReason, message string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: int32(code), Reason: reason, Message: message})
	}
}

// podDebuggedBefore has a main that runs, and a debug container that has ended with exit code 5.
func podDebuggedBefore() *corev1.Pod {
	at := metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", ResourceVersion: "1"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}}},
			EphemeralContainerStatuses: []corev1.ContainerStatus{{Name: "debug", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 5, Reason: "Error", StartedAt: at, FinishedAt: at}}}}},
	}
}

// DC-03 DC-06: what the server refuses, for whatever reason, is never answered with the output or the exit code of another run.
func TestDebugRefusedBesideAnEarlierRun(t *testing.T) {
	broken := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	}
	for name, c := range map[string]struct {
		exec func(http.ResponseWriter, *http.Request)
		code int
		says string
	}{
		"unknown profile":   {refusing(400, metav1.StatusReasonBadRequest, "no profile foo"), 1, "no profile foo"},
		"negative ttl":      {refusing(400, metav1.StatusReasonBadRequest, "not a duration above zero"), 1, "not a duration"},
		"forbidden":         {refusing(403, metav1.StatusReasonForbidden, "you may not"), 1, "you may not"},
		"no such pod":       {refusing(404, metav1.StatusReasonNotFound, `pods "web" not found`), 1, "not found"},
		"conflict":          {refusing(409, metav1.StatusReasonConflict, "is being deleted"), 1, "is being deleted"},
		"invalid":           {refusing(422, metav1.StatusReasonInvalid, "is invalid"), 1, "is invalid"},
		"too many requests": {refusing(429, metav1.StatusReasonTooManyRequests, "try again"), 1, "try again"},
		"webhook is down":   {refusing(500, metav1.StatusReasonInternalError, "failed calling webhook"), 1, "failed calling webhook"},
		"unavailable":       {refusing(503, metav1.StatusReasonServiceUnavailable, "the server stops"), 1, "the server stops"},
		"timeout":           {refusing(504, metav1.StatusReasonTimeout, "has said nothing"), 1, "has said nothing"},
		"a broken line":     {broken, 125, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &debugServer{pod: podDebuggedBefore(), log: "OLD\n", exec: c.exec}
			var out, errs bytes.Buffer
			code := run(Terminal{In: strings.NewReader(""), Out: &out, Err: &errs}, []string{"debug", "--kubeconfig", d.kubeconfig(t), "web", "--", "echo", "NEW"})
			if code != c.code || out.String() != "" || !strings.Contains(errs.String(), c.says) {
				t.Errorf("exit code %d, output %q, errors %q", code, out.String(), errs.String())
			}
		})
	}
}

// DC-03: a run that had ended before anybody could attach is told by its log and exit code, whatever the streams said.
func TestDebugToldByLog(t *testing.T) {
	d := &debugServer{pod: podDebuggedBefore(), log: "NEW\n"}
	d.exec = func(w http.ResponseWriter, r *http.Request) {
		if err := podspec.SetDebugRuns(d.pod, podspec.DebugRuns{"debug": {Request: r.URL.Query().Get(debugask.ParamRequest)}}); err != nil {
			t.Error(err)
		}
		refusing(500, metav1.StatusReasonInternalError, "container is not running")(w, r)
	}
	var out, errs bytes.Buffer
	code := run(Terminal{In: strings.NewReader(""), Out: &out, Err: &errs}, []string{"debug", "--kubeconfig", d.kubeconfig(t), "web", "--", "echo", "NEW"})
	if code != 5 || out.String() != "NEW\n" {
		t.Errorf("exit code %d, output %q, errors %q", code, out.String(), errs.String())
	}
}
