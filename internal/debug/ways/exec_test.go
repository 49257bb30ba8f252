// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Where a command cannot be run, the user is told how to look all the same.
func TestExecAdvice(t *testing.T) {
	for failure, want := range map[string]string{
		`exec: "ls": executable file not found in $PATH`:     "wherry debug --target app web brings a shell",
		`exec: "/x": stat /x: no such file or directory`:     "has no such command",
		"container is in CONTAINER_EXITED state":             "wherry debug --target app web looks at what is left",
		`container not found ("app")`:                        "does not run",
		`container "app" is waiting to start: x`:             "does not run",
		"the server stops":                                   "",
		`pods "web" is forbidden: User "jane" cannot create`: "",
	} {
		if got := ExecAdvice(failure, "web", "app"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", failure, got)
		}
	}
	if got := ExecAdvice("is not running", "web", ""); !strings.Contains(got, "wherry debug web ") {
		t.Errorf("%q", got)
	}
}

// The container that nobody named is kubectl's, and so is the note.
func TestDefault(t *testing.T) {
	two := podOf([]corev1.ContainerStatus{running("app"), running("helper")}, ended("debug", 0))
	two.Spec.InitContainers = []corev1.Container{{Name: "setup"}}
	if name, note := Default(two); name != "app" || note != `Defaulted container "app" out of: app, helper, setup (init), debug (ephem)` {
		t.Errorf("%s, %q", name, note)
	}
	two.Annotations = map[string]string{"kubectl.kubernetes.io/default-container": "helper"}
	if name, note := Default(two); name != "helper" || note != "" {
		t.Errorf("%s, %q", name, note)
	}
	two.Annotations["kubectl.kubernetes.io/default-container"] = "gone"
	if name, _ := Default(two); name != "app" {
		t.Errorf("%s", name)
	}
	if name, note := Default(podOf([]corev1.ContainerStatus{running("app")})); name != "app" || note != "" {
		t.Errorf("%s, %q", name, note)
	}
}
