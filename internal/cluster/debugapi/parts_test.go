// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/record"
)

// The containers are in the order in which they start, and a static pod's uid is the one that its node knows.
func TestPodOfASession(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u"}, Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "side", RestartPolicy: &always}, {Name: "first"}},
		Containers:     []corev1.Container{{Name: "main"}, {Name: "second"}},
		EphemeralContainers: []corev1.EphemeralContainer{{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}}}
	if got := order(pod); !slices.Equal(got, []string{"first", "side", "main", "second", "debug"}) {
		t.Errorf("order: %v", got)
	}
	if got := about(pod); got != (wire.Pod{Namespace: "shop", Name: "web", UID: "u"}) {
		t.Errorf("got %+v", got)
	}
	pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "static"}
	if got := about(pod); got.UID != "static" {
		t.Errorf("a static pod: %+v", got)
	}
	if name, err := container(pod, ""); err != nil || name != "main" {
		t.Errorf("got %s, %v", name, err)
	}
	if name, err := container(pod, "debug"); err != nil || name != "debug" {
		t.Errorf("got %s, %v", name, err)
	}
	if _, err := container(pod, "db"); err == nil || !strings.Contains(err.Error(),
		"first, side, main, second, debug") {
		t.Errorf("got %v", err)
	}
}

// Of the agents of a node the one is asked that is ready and stays.
func TestChoose(t *testing.T) {
	agent := func(name string, age time.Duration, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(
			time.Unix(1e9, 0).Add(-age))}, Status: corev1.PodStatus{PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
		if change != nil {
			change(p)
		}
		return p
	}
	leaving := agent("leaving", 0, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })
	starting := agent("starting", 0, func(p *corev1.Pod) { p.Status.Conditions = nil })
	homeless := agent("homeless", 0, func(p *corev1.Pod) { p.Status.PodIP = "" })
	old, young := agent("old", time.Hour, nil), agent("young", time.Minute, nil)
	for _, c := range []struct {
		of   []*corev1.Pod
		want *corev1.Pod
	}{{nil, nil}, {[]*corev1.Pod{leaving, starting, homeless}, nil}, {[]*corev1.Pod{leaving, old}, old},
		{[]*corev1.Pod{old, young, starting}, young}, {[]*corev1.Pod{young, old}, young}} {
		if got := choose(c.of); got != c.want {
			t.Errorf("of %d: got %v", len(c.of), got)
		}
	}
}

// An agent's refusal is passed on if it is one, and an answer that is none is no success.
func TestRefused(t *testing.T) {
	agent := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"},
		Spec: corev1.PodSpec{NodeName: "edge"}}
	for _, c := range []struct {
		code int
		body string
		want []string
	}{
		{409, `{"kind":"Status","status":"Failure","code":409,"reason":"PodNotOnNode","message":"gone"}`,
			[]string{"gone"}},
		{409, `{"kind":"Status","status":"Success","code":200}`, []string{"edge", "answered 409"}},
		{200, `{"kind":"Status","status":"Failure","code":100}`, []string{"answered 200"}},
		{500, "oops\n", []string{"answered 500: oops"}},
		{502, strings.Repeat("x", 5000), []string{"answered 502"}},
	} {
		err := refused(agent, c.code, []byte(c.body))
		for _, w := range c.want {
			if err == nil || !strings.Contains(err.Error(), w) || len(err.Error()) > 500 {
				t.Errorf("%d %.50s: %v does not say %q", c.code, c.body, err, w)
			}
		}
	}
}

// An older cluster's server does not know all kinds of rules, and is not waited for.
func TestInOrder(t *testing.T) {
	all := map[string]bool{"mutatingadmissionpolicies": true, "mutatingwebhookconfigurations": true,
		"validatingadmissionpolicies": true, "validatingwebhookconfigurations": true, "others": true}
	if got := inOrder(all); !slices.Equal(got, []string{"MutatingAdmissionPolicy", "MutatingAdmissionWebhook",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook"}) {
		t.Errorf("got %v", got)
	}
	delete(all, "mutatingadmissionpolicies")
	if got := inOrder(all); len(got) != 3 || slices.Contains(got, "MutatingAdmissionPolicy") {
		t.Errorf("got %v", got)
	}
}

// Events say in few words who did what and how it ended, whatever the command and the pod's name are like.
func TestEventWords(t *testing.T) {
	s := wire.Session{ID: "0123456789ab", As: wire.Shell, Container: "main", Image: "alpine", Profile: "general",
		Writable: true, Command: []string{"sh", strings.Repeat("é", 200)}, By: "jane"}
	for end, want := range map[record.End]string{
		{}: "connection has gone", {Reason: "Timeout"}: "Timeout", {Reason: "x", Message: "time is up"}: "time is up"} {
		if got := endWords(s, end, 90*time.Second); !strings.Contains(got, want) || !strings.Contains(got, "1m30s") {
			t.Errorf("%+v: %s", end, got)
		}
	}
	got := endWords(s, record.End{ExitCode: ptr.To[int32](7)}, time.Second)
	for _, w := range []string{"jane", "0123456789ab", "main", "alpine", "general", "writable", "sh ", "exit code 7"} {
		if !strings.Contains(got, w) {
			t.Errorf("%s does not say %q", got, w)
		}
	}
	if len(got) > 400 || !strings.Contains(got, "…") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if name := eventName(strings.Repeat("a", 199)+".b", "0123456789ab", "started"); len(name) > 253 ||
		strings.Contains(name, "..") {
		t.Errorf("the event's name is %s", name)
	}
}

// What is wrong with a configuration is told whole, before anything is made.
func TestConfig(t *testing.T) {
	good := Defaults()
	good.Cluster, good.Namespace = &rest.Config{}, "wherry-debug"
	if err := good.validate(); err != nil {
		t.Error(err)
	}
	bad := Config{BindAddress: "here", Port: -1, AgentSelector: "a=(", Logger: slog.New(slog.DiscardHandler)}
	err := bad.validate()
	for _, w := range []string{"namespace: none given", "CA secret: none given", "agents' labels", `"here"`, "port -1",
		"agents' port 0", "no way to kube-apiserver", "longest time"} {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v does not say %q", err, w)
		}
	}
}
