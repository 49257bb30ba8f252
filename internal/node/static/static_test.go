// SPDX-License-Identifier: Apache-2.0

package static

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/podspec"
)

const web = `apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: main
    image: web:1
`

func parse(t *testing.T, text string) []*corev1.Pod {
	t.Helper()
	pods, err := Parse(Origin{Source: File, Place: "web.yaml", Node: "node1"}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return pods
}

// PL-12 PL-31: what a manifest's pod becomes on its node.
func TestParse(t *testing.T) {
	p := parse(t, web)[0]
	if p.Name != "web-node1" || p.Namespace != "default" || p.Spec.NodeName != "node1" {
		t.Errorf("is %s/%s on %s", p.Namespace, p.Name, p.Spec.NodeName)
	}
	if len(p.UID) != 32 || p.Annotations[HashAnnotation] != string(p.UID) || p.Annotations[SourceAnnotation] != "file" {
		t.Errorf("uid %q, annotations %v", p.UID, p.Annotations)
	}
	if !podspec.Critical(p) || len(p.Spec.Tolerations) != 1 ||
		p.Spec.Tolerations[0].Effect != corev1.TaintEffectNoExecute {
		t.Errorf("priority %v, tolerations %v", *p.Spec.Priority, p.Spec.Tolerations)
	}
	if p.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		t.Error("has no defaults")
	}
	two := parse(t, web+"---\n"+strings.Replace(web, "name: web", "name: other", 1))
	if len(two) != 2 || two[1].Name != "other-node1" {
		t.Errorf("two documents are %d pods", len(two))
	}
	list := parse(t, `{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"},`+
		`"spec":{"containers":[{"name":"c","image":"i"}]}}]}`)
	if len(list) != 1 || list[0].Name != "a-node1" {
		t.Errorf("a list is %v", list)
	}
}

// PL-12 PL-31: a pod's UID follows from its manifest's meaning, and from nothing else.
func TestUID(t *testing.T) {
	uid := func(o Origin, text string) types.UID {
		pods, err := Parse(o, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return pods[0].UID
	}
	here := Origin{Source: File, Place: "a.yaml", Node: "n"}
	want := uid(here, web)
	if got := uid(Origin{Source: File, Place: "b.yaml", Node: "n"}, "# a comment\n"+web+"status: {}\n"); got != want {
		t.Error("the file's name, a comment or a status counts")
	}
	for name, got := range map[string]types.UID{
		"another image":  uid(here, strings.Replace(web, "web:1", "web:2", 1)),
		"another node":   uid(Origin{Source: File, Place: "a.yaml", Node: "m"}, web),
		"another source": uid(Origin{Source: HTTP, Place: "a.yaml", Node: "n"}, web),
	} {
		if got == want {
			t.Errorf("%s has the same UID", name)
		}
	}
	evil := strings.Replace(web, "  name: web",
		"  name: web\n  uid: ../../etc\n  annotations: {kubernetes.io/config.mirror: x}", 1)
	p := parse(t, evil)[0]
	if strings.Contains(string(p.UID), ".") || IsMirror(p) {
		t.Errorf("the manifest chose its uid %q, or called itself a mirror", p.UID)
	}
}

// PL-31: what cannot be is refused as a whole, with the place and the reason.
func TestRefused(t *testing.T) {
	with := func(spec string) string { return web + spec }
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "contains no objects"},
		"half written":  {web[:len(web)-25], "spec.containers[0]"},
		"not YAML":      {"{", "web.yaml"},
		"unknown field": {with("  hostNet: true\n"), "web.yaml:9: spec.hostNet: unknown field"},
		"another kind": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
			"web.yaml:1: is a ConfigMap; only pods can be static"},
		"no name":      {strings.Replace(web, "name: web", "generateName: web-", 1), "metadata.name is required"},
		"bad name":     {strings.Replace(web, "name: web", "name: Web!", 1), "metadata.name"},
		"one of two":   {web + "---\n" + strings.Replace(web, "image: web:1", "image: ''", 1), "image"},
		"account":      {with("  serviceAccountName: a\n"), "static pods may not reference serviceaccounts"},
		"pull secrets": {with("  imagePullSecrets: [{name: a}]\n"), "static pods may not reference secrets"},
		"env": {with("    env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b}}}]\n"),
			"static pods may not reference secrets"},
		"envFrom": {with("    envFrom: [{configMapRef: {name: a}}]\n"),
			"static pods may not reference configmaps"},
		"claim": {with("  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]\n"),
			"static pods may not reference persistentvolumeclaims"},
		"config map": {with("  volumes: [{name: v, configMap: {name: c}}]\n"),
			"static pods may not reference configmaps (via configmap volumes)"},
		"secret": {with("  volumes: [{name: v, secret: {secretName: c}}]\n"),
			"static pods may not reference secrets (via secret volumes)"},
		"token": {with("  volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]\n"),
			"static pods may not reference serviceaccounts (via projected volumes)"},
		"debug container": {with("  ephemeralContainers: [{name: d, image: i}]\n"), "ephemeral"},
	} {
		pods, err := Parse(Origin{Source: File, Place: "web.yaml", Node: "n"}, []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || pods != nil {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	parse(t,
		web+
			"  volumes: [{name: e, emptyDir: {}}, {name: h, hostPath: {path: /etc}}, {name: d, projected: {sources: [{downwardAPI: {items: []}}]}}]\n")
}

// FuzzParse: whatever lies in a folder of manifests, it is refused with a reason or is pods that can run here.
func FuzzParse(f *testing.F) {
	f.Add([]byte(web))
	f.Add([]byte(web + "---\n" + web))
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		pods, err := Parse(Origin{Source: File, Place: "f", Node: "n"}, text)
		if err != nil && pods != nil {
			t.Error("pods beside an error")
		}
		for _, p := range pods {
			if len(p.UID) != 32 || strings.ContainsAny(string(p.UID), "/.") || IsMirror(p) ||
				!strings.HasSuffix(p.Name, "-n") ||
				len(podspec.Validate(p)) > 0 || needsAPI(p) != "" {
				t.Errorf("%+v", p)
			}
		}
	})
}

func podOf(name string, uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name, UID: uid}}
}

func leaving(p *corev1.Pod) *corev1.Pod { return Ending(p, metav1.Now()) }

// PL-12: one pod of a name at a time; the one that is there ends first, and of those that were wanted meanwhile the
// last begins.
func TestNext(t *testing.T) {
	type set = map[string]*corev1.Pod
	for _, c := range []struct {
		name          string
		there, wanted set
		again         types.UID
		begin, end    string
	}{
		{"a new file", nil, set{"d/a": podOf("a", "1")}, "", "d/a", ""},
		{"nothing has changed", set{"d/a": podOf("a", "1")}, set{"d/a": podOf("a", "1")}, "", "", ""},
		{"changed", set{"d/a": podOf("a", "1")}, set{"d/a": podOf("a", "2")}, "", "", "d/a"},
		{"changed while it ends", set{"d/a": leaving(podOf("a", "1"))}, set{"d/a": podOf("a", "3")}, "", "", ""},
		{"removed", set{"d/a": podOf("a", "1")}, nil, "", "", "d/a"},
		{"removed while it ends", set{"d/a": leaving(podOf("a", "1"))}, nil, "", "", ""},
		{"put back while it ends", set{"d/a": leaving(podOf("a", "1"))}, set{"d/a": podOf("a", "1")}, "", "", ""},
		{"removed and put back at once", set{"d/a": podOf("a", "1")}, set{"d/a": podOf("a", "1")}, "1", "", "d/a"},
		{"renamed pod", set{"d/a": podOf("a", "1")}, set{"d/b": podOf("b", "2")}, "", "d/b", "d/a"},
	} {
		begin, end := Next(c.there, c.wanted, map[types.UID]bool{c.again: true})
		if strings.Join(begin, " ") != c.begin || strings.Join(end, " ") != c.end {
			t.Errorf("PL-12 %s: begin %v, end %v", c.name, begin, end)
		}
	}
	first, second := podOf("a", "1"), podOf("a", "2")
	wanted, doubles := Want([][]*corev1.Pod{{first}, {second, podOf("b", "3")}})
	if wanted["d/a"] != first || len(wanted) != 2 || len(doubles) != 1 || doubles[0] != second {
		t.Errorf("PL-12 two of one name: %v, %v", wanted, doubles)
	}
}

// PL-12 PL-39: a pod that begins once more keeps count of its restarts, unless nothing of it is to be restarted.
func TestAnew(t *testing.T) {
	last := &corev1.PodStatus{Phase: corev1.PodFailed, Reason: "x",
		ContainerStatuses: []corev1.ContainerStatus{{Name: "c", RestartCount: 3}}}
	p := podOf("a", "1")
	p.Spec.RestartPolicy = corev1.RestartPolicyAlways
	if s := Anew(p, last); s.Phase != corev1.PodPending || s.Reason != "" || len(s.ContainerStatuses) != 1 {
		t.Errorf("PL-12 %+v", s)
	}
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	if s := Anew(p, last); len(s.ContainerStatuses) != 0 {
		t.Errorf("PL-12 %+v", s)
	}
}

// PL-12: the mirror pod is made, made again, brought up to date and removed; no pod of anybody else's is touched.
func TestMirror(t *testing.T) {
	p := parse(t, web)[0]
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1", UID: "nu"}}
	good := MirrorOf(p, node)
	owner := good.OwnerReferences[0]
	if good.UID != "" || good.Annotations[corev1.MirrorPodAnnotationKey] != string(p.UID) ||
		good.Spec.Priority != nil ||
		owner.Kind != "Node" || owner.UID != "nu" || !*owner.Controller || Translate(good) != p.UID || IsMirror(p) {
		t.Errorf("PL-12 mirror %+v", good.ObjectMeta)
	}
	deleted, old := leaving(good), good.DeepCopy()
	old.Annotations[corev1.MirrorPodAnnotationKey] = "another"
	for _, c := range []struct {
		name      string
		pod, have *corev1.Pod
		told      bool
		want      Step
	}{
		{"none yet", p, nil, false, Create},
		{"no news", p, good, true, Nothing},
		{"news", p, good, false, Publish},
		{"deleted by somebody", p, deleted, true, Delete},
		{"of an earlier manifest", p, old, true, Delete},
		{"of no static pod", nil, good, false, Delete},
		{"somebody else's pod", p, podOf("web", "x"), false, Nothing},
		{"somebody else's pod, and no static one", nil, podOf("web", "x"), false, Nothing},
		{"nothing at all", nil, nil, false, Nothing},
	} {
		if got := Mirror(c.pod, c.have, c.told); got != c.want {
			t.Errorf("PL-12 %s: step %d, want %d", c.name, got, c.want)
		}
	}
	s := MirrorStatus(&corev1.PodStatus{ObservedGeneration: 4,
		Conditions: []corev1.PodCondition{{Type: "Ready", ObservedGeneration: 4}}},
		&corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: "Theirs"}, {Type: "Ready", Reason: "old"}}})
	if s.ObservedGeneration != 0 || len(s.Conditions) != 2 || s.Conditions[0].ObservedGeneration != 0 ||
		s.Conditions[1].Type != "Theirs" {
		t.Errorf("PL-12 status %+v", s)
	}
}
