// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// of is a pod of an owner, so many minutes old.
func of(name, kind, owner string, minutes int, phase corev1.PodPhase, isReady bool) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name,
		CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-time.Duration(minutes) * time.Minute))},
		Status: corev1.PodStatus{Phase: phase}}
	if kind != "" {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner, UID: "u-" + "x", Controller: new(true)}}
	}
	if isReady {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return p
}

// DA-05: of an object's pods the newest that runs is meant, one that is ready before others; and it is said.
func TestChoose(t *testing.T) {
	gone := of("gone", "ReplicaSet", "web-1", 0, corev1.PodRunning, true)
	gone.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)}
	pods := []corev1.Pod{of("old", "ReplicaSet", "web-1", 9, corev1.PodRunning, true), of("new", "ReplicaSet", "web-2", 5, corev1.PodRunning, true),
		of("newest", "ReplicaSet", "web-2", 1, corev1.PodPending, false), of("unready", "ReplicaSet", "web-2", 2, corev1.PodRunning, false),
		of("copy", "", "", 0, corev1.PodRunning, true), of("other", "ReplicaSet", "webber-1", 0, corev1.PodRunning, true), gone,
		of("failed", "ReplicaSet", "web-2", 0, corev1.PodFailed, false)}
	web := owner{kind: "deployment", name: "web", uid: "u-d"}
	for _, c := range []struct {
		owner owner
		pods  []corev1.Pod
		want  string // the pod, or an error
		note  string
	}{
		{web, pods, "new", "deployment/web: pod new, the newest of 3 that run"},
		{web, pods[2:3], "newest", "deployment/web: pod newest, its only one, which is not running"},
		{web, []corev1.Pod{pods[7], pods[2]}, "newest", "deployment/web: pod newest, the newest of its 2, none of which is running"},
		{web, pods[3:4], "unready", "deployment/web: pod unready, the only one that runs"},
		{web, pods[4:6], "deployment/web has no pods", ""},
		{owner{kind: "service", name: "web"}, pods, "copy", "service/web: pod copy, the newest of 5 that run"},
		{owner{kind: "job", name: "j", uid: "u-x"}, pods[:1], "old", "job/j: pod old, the only one that runs"},
		{owner{kind: "job", name: "j", uid: "u-y"}, pods[:1], "job/j has no pods", ""},
	} {
		pod, note, err := choose(c.owner, c.pods)
		if err != nil {
			pod = err.Error()
		}
		if pod != c.want || note != c.note {
			t.Errorf("%s/%s: %q, %q", c.owner.kind, c.owner.name, pod, note)
		}
	}
}

// What is before a name is a kind, in kubectl's words, or is refused; a name alone asks nobody.
func TestPodMeant(t *testing.T) {
	f := &Flags{}
	for text, want := range map[string]string{"web": "web", "pod/web": "web", "pods/web": "web", "po/web": "web",
		"rs": "rs", "node-1/web": `no kind "node-1"`, "deployment/": "deployment/NAME", "svc/a/b": "service/NAME", "/web": `no kind ""`} {
		pod, note, err := f.PodMeant(t.Context(), "", text)
		if err != nil {
			pod = err.Error()
		}
		if note != "" || !strings.Contains(pod, want) || err == nil && pod != want {
			t.Errorf("%s: %q, %q, %v", text, pod, note, err)
		}
	}
	for word, want := range map[string]string{"deploy": "deployment", "deployments.apps": "deployment", "sts": "statefulset", "ds": "daemonset",
		"RS": "replicaset", "jobs": "job", "svc": "service", "shop": ""} {
		if got := kindOf(word); got != want {
			t.Errorf("%s: %q", word, got)
		}
	}
}
