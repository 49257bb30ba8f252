// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/test/images"
)

// kit is a Space for tests that write their pods as people do, in YAML, and look at them from inside.
type kit struct {
	*Space
	t *testing.T
}

// newKit is a kit on the server that tests share.
func newKit(t *testing.T) *kit {
	t.Helper()
	needBusybox(t)
	return &kit{Space: shared(t), t: t}
}

// kitOn is a kit on a server of the test's own.
func kitOn(t *testing.T, s *Server) *kit {
	t.Helper()
	needBusybox(t)
	return &kit{Space: s.Space(t), t: t}
}

// ctx ends when the test must be over.
func (k *kit) ctx() context.Context {
	ctx, cancel := context.WithTimeout(k.Context(), Timeout)
	k.t.Cleanup(cancel)
	return ctx
}

// podOf reads a pod from YAML. IDLE in a command stands for Idle; an image that is not named is busybox, "tool" is the tool; the
// grace period is 1 s unless it is given.
func podOf(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		t.Fatalf("the test's pod: %v\n%s", err, text)
	}
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for j := range list[i].Command {
				list[i].Command[j] = strings.ReplaceAll(list[i].Command[j], "IDLE", Idle)
			}
			switch list[i].Image {
			case "":
				list[i].Image = images.BusyboxRef
			case "tool":
				list[i].Image = images.ToolRef
			}
		}
	}
	return pod
}

// pod creates a pod from YAML, see podOf.
func (k *kit) pod(text string) *corev1.Pod {
	k.t.Helper()
	return k.Create(podOf(k.t, text))
}

// up creates a pod and waits until it is ready.
func (k *kit) up(text string) *corev1.Pod {
	k.t.Helper()
	return k.WaitReady(k.pod(text).Name)
}

// ran creates a pod, waits for its end and returns it with the output of its container c.
func (k *kit) ran(text string) (*corev1.Pod, string) {
	k.t.Helper()
	name := k.pod(text).Name
	pod := k.Wait(name, "ended", func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	return pod, k.log(name, pod.Spec.Containers[0].Name)
}

// configMap creates a ConfigMap.
func (k *kit) configMap(name string, data map[string]string) {
	k.t.Helper()
	_, err := k.Client.CoreV1().ConfigMaps(k.Namespace).Create(k.ctx(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
	k.must(err)
}

func (k *kit) setConfigMap(name string, data map[string]string) {
	k.t.Helper()
	_, err := k.Client.CoreV1().ConfigMaps(k.Namespace).Update(k.ctx(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.UpdateOptions{})
	k.must(err)
}

func (k *kit) secret(name string, data map[string]string) {
	k.t.Helper()
	_, err := k.Client.CoreV1().Secrets(k.Namespace).Create(k.ctx(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: data}, metav1.CreateOptions{})
	k.must(err)
}

func (k *kit) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

// log is what a container has written so far.
func (k *kit) log(pod, container string) string {
	k.t.Helper()
	text, err := k.Client.CoreV1().Pods(k.Namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container}).DoRaw(k.ctx())
	k.must(err)
	return string(text)
}

// awaitLog follows a container's output until it contains the text, and returns what was read.
func (k *kit) awaitLog(pod, container, text string) string {
	k.t.Helper()
	stream, err := k.Client.CoreV1().Pods(k.Namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, Follow: true}).Stream(k.ctx())
	k.must(err)
	defer stream.Close()
	var got []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := stream.Read(buf)
		seen := max(0, len(got)-len(text)+1) // what was looked at
		got = append(got, buf[:n]...)
		if bytes.Contains(got[seen:], []byte(text)) {
			return string(got)
		}
		if err != nil {
			k.t.Fatalf("the log of %s/%s ended (%v) without %q, after %d bytes:\n%.2000s", pod, container, err, text, len(got), got)
		}
	}
}

// exec runs a command in a container.
func (k *kit) exec(pod, container string, command ...string) (stdout, stderr string, code int) {
	k.t.Helper()
	req := k.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(k.Namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	e, err := remotecommand.NewWebSocketExecutor(k.Config, http.MethodGet, req.URL().String())
	k.must(err)
	var out, errs bytes.Buffer
	err = e.StreamWithContext(k.ctx(), remotecommand.StreamOptions{Stdout: &out, Stderr: &errs})
	var exit utilexec.CodeExitError
	if errors.As(err, &exit) {
		return out.String(), errs.String(), exit.Code
	}
	k.must(err)
	return out.String(), errs.String(), 0
}

// sh runs a shell script in a container, which must succeed, and returns its output without the last newline.
func (k *kit) sh(pod, container, script string) string {
	k.t.Helper()
	out, errs, code := k.exec(pod, container, "sh", "-c", script)
	if code != 0 {
		k.t.Fatalf("in %s/%s: %s\nended with %d: %s%s", pod, container, script, code, out, errs)
	}
	return strings.TrimRight(out, "\n")
}

// stop1 tells a container's main process to end. The exec that does so may be ended with the container.
func (k *kit) stop1(pod, container string) {
	k.t.Helper()
	if out, errs, code := k.exec(pod, container, "kill", "-TERM", "1"); code != 0 && code != 137 {
		k.t.Fatalf("kill in %s/%s: %d %s%s", pod, container, code, out, errs)
	}
}

// says checks the output of a script in a container.
func (k *kit) says(pod, container, script, want string) {
	k.t.Helper()
	if got := k.sh(pod, container, script); got != want {
		k.t.Errorf("in %s/%s: %s\ngot  %q\nwant %q", pod, container, script, got, want)
	}
}

// fails checks that a script fails in a container, and what it says.
func (k *kit) fails(pod, container, script, want string) {
	k.t.Helper()
	out, errs, code := k.exec(pod, container, "sh", "-c", script)
	if code == 0 || !strings.Contains(out+errs, want) {
		k.t.Errorf("in %s/%s: %s\nended with %d and %q; want a failure with %q", pod, container, script, code, out+errs, want)
	}
}

// refused creates a pod that the API server must refuse, and checks its words.
func (k *kit) refused(text string, want ...string) {
	k.t.Helper()
	_, err := k.Client.CoreV1().Pods(k.Namespace).Create(k.ctx(), podOf(k.t, text), metav1.CreateOptions{})
	if err == nil {
		k.t.Errorf("this pod was taken:\n%s", text)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			k.t.Errorf("the refusal does not say %q: %v", w, err)
		}
	}
}

// fetch GETs a URL and returns the body; it must answer within the time.
func fetch(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	// A transport of its own: connections are not kept, so that every request is a new one to the network.
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}
