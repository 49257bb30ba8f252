// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wherry exec takes the container that kubectl takes, and says what to do where a command cannot be run.
func TestExecContainerAndAdvice(t *testing.T) {
	d := &debugServer{pod: podDebuggedBefore()}
	d.pod.Spec.Containers = append(d.pod.Spec.Containers, corev1.Container{Name: "helper"})
	var asked []string
	d.exec = func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("container"))
		if asked[len(asked)-1] == "" {
			refusing(400, metav1.StatusReasonBadRequest, "a container name must be specified for pod web, choose one of: [main helper]")(w, r)
			return
		}
		refusing(500, metav1.StatusReasonInternalError, "rpc error: container is in CONTAINER_EXITED state")(w, r)
	}
	var errs bytes.Buffer
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}
	d.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "helper", State: ended}, {Name: "main", LastTerminationState: ended}}
	code := run(Terminal{Out: &bytes.Buffer{}, Err: &errs}, []string{"exec", "--kubeconfig", d.kubeconfig(t), "web", "--", "id"})
	if code != 1 || strings.Join(asked, ",") != ",main" {
		t.Errorf("exit code %d, asked for %q", code, asked)
	}
	if strings.Contains(errs.String(), "CONTAINER_EXITED") {
		t.Errorf("it says a runtime's word: %s", errs.String())
	}
	for _, want := range []string{`Defaulted container "main" out of: main, helper, debug (ephem)`, "error: container main of pod web has ended (exit code 3)\n", "wherry debug --target main web"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("it does not say %q: %s", want, errs.String())
		}
	}
}

// -c completes with the containers of the pod, --target with those that can be one.
func TestContainerCompletion(t *testing.T) {
	d := &debugServer{pod: podDebuggedBefore()}
	path := d.kubeconfig(t)
	for line, want := range map[string]string{
		"exec web -c":         "main debug",
		"debug web -c":        "debug",
		"debug web --target":  "main",
		"cp web:/etc/x . -c":  "main debug",
		"exec pod/web -c":     "main debug",
		"exec no-such-pod -c": "",
	} {
		var out bytes.Buffer
		args := append([]string{"__complete"}, append(strings.Fields(line), "")...)
		args = slices.Insert(args, 2, "--kubeconfig", path)
		run(Terminal{Out: &out, Err: &bytes.Buffer{}}, args)
		got := strings.Fields(strings.Split(out.String(), ":")[0])
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q", line, out.String())
		}
	}
}
