// SPDX-License-Identifier: Apache-2.0

package byrpc

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

func podLabels(namespace, name, uid string) map[string]string {
	return map[string]string{cri.LabelPodNamespace: namespace, cri.LabelPodName: name, cri.LabelPodUID: uid}
}

// DA-07: a pod is the one of this namespace, name and uid; of its sandboxes, the one that is ready, else the newest.
func TestBoxOf(t *testing.T) {
	const ready, off = runtimeapi.PodSandboxState_SANDBOX_READY, runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	box := func(id string, created int64, state runtimeapi.PodSandboxState, labels map[string]string) *runtimeapi.PodSandbox {
		return &runtimeapi.PodSandbox{Id: id, CreatedAt: created, State: state, Labels: labels}
	}
	exec := podLabels("shop", "web", "u1")
	exec[cri.LabelContainerType] = cri.TypeExec
	all := []*runtimeapi.PodSandbox{
		box("old", 1, off, podLabels("shop", "web", "u1")), box("now", 2, ready, podLabels("shop", "web", "u1")),
		box("odd", 3, off, podLabels("shop", "web", "u1")), box("exec", 9, ready, exec),
		box("ended1", 1, off, podLabels("shop", "job", "u2")), box("ended2", 2, off, podLabels("shop", "job", "u2")),
		box("none", 1, ready, map[string]string{}),
	}
	for _, test := range []struct {
		pod   PodName
		want  string
		other string
	}{
		{PodName{"shop", "web", "u1"}, "now", ""},
		{PodName{"shop", "job", "u2"}, "ended2", ""},
		{PodName{"shop", "web", "u2"}, "", "u1"},
		{PodName{"shop", "web", ""}, "", "u1"},
		{PodName{"bank", "web", "u1"}, "", ""},
		{PodName{"shop", "db", "u1"}, "", ""},
		{PodName{"", "", ""}, "", ""},
	} {
		got, err := sandboxOf(all, test.pod)
		away := (*NotHere)(nil)
		if test.want != "" && (err != nil || got.GetId() != test.want) ||
			test.want == "" && (!errors.As(err, &away) || away.Other != test.other) {
			t.Errorf("%+v: %s, %v", test.pod, got.GetId(), err)
		}
	}
}

// The containers of a pod come by name, the newest attempt first; none of another's.
func TestOfPod(t *testing.T) {
	one := func(name string, attempt uint32, uid string) *runtimeapi.Container {
		return &runtimeapi.Container{Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: attempt}, Labels: podLabels("shop", "web", uid)}
	}
	list := []*runtimeapi.Container{one("web", 0, "u1"), one("db", 1, "u1"), one("web", 2, "u1"), one("web", 1, "u1"), one("web", 7, "u2")}
	var got []string
	for _, c := range ofPod(list, PodName{"shop", "web", "u1"}) {
		got = append(got, fmt.Sprint(c.GetMetadata().GetName(), c.GetMetadata().GetAttempt()))
	}
	if strings.Join(got, " ") != "db1 web2 web1 web0" {
		t.Errorf("%q", got)
	}
}
