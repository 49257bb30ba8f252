// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Ways by which something gets into a pod.
const (
	byCreate    = "create"
	byUpdate    = "update"
	byEphemeral = "ephemeralcontainers"
	byDebug     = "exec++"
	byImageExec = "image exec"
)

var allWays = []string{byCreate, byUpdate, byEphemeral, byDebug, byImageExec}

// world is what a plug-in is tried in: a namespace, and pods good-N and bad-N that were there before the plug-in had
// anything to say.
type world struct {
	c  *kubernetes.Clientset
	n  *debugNode
	ns string
}

// gate is a plug-in of admission, and what it lets pass and refuses.
type gate struct {
	plugin  string
	good    func(*corev1.Pod) // makes of a pod one that the plug-in likes
	arrange func(*testing.T, world)
	ways    map[string]way
}

// way is how a plug-in judges one way into a pod. What is allowed and denied are images, unless the functions say
// otherwise.
type way struct {
	why string // why there is nothing to deny: then only what is allowed is tried

	allow, deny string // images; default of allow: tools:1
	words       string // of the refusal
	becomes     string // what a plug-in makes of the image that is allowed

	allowPod, denyPod     func(*corev1.Pod)
	allowDebug, denyDebug func(*corev1.EphemeralContainer)
	allowQuery, denyQuery string // further parameters of exec++
}

// TestAdmissionMatrix proves EC-21 IX-07 SC-16: every plug-in of admission, allowing and denying on every way into a
// pod. What is denied leaves nothing behind: no pod, no change, no record, no request to the node. ATTACK A20.
func TestAdmissionMatrix(t *testing.T) {
	c, n := client(t), newDebugNode(t)
	for _, g := range gates() {
		t.Run(g.plugin, func(t *testing.T) {
			w := world{c, n, namespace(t, c)}
			for _, way := range allWays[1:] {
				good := pod("good-" + slug(way))
				if g.good != nil {
					g.good(good)
				}
				n.pod(t, w.ns, good)
				n.pod(t, w.ns, pod("bad-"+slug(way)))
			}
			if g.arrange != nil {
				g.arrange(t, w)
			}
			for _, name := range allWays {
				way, ok := g.ways[name]
				if !ok {
					t.Errorf("%s: the table says nothing", name)
					continue
				}
				t.Run(name, func(t *testing.T) {
					if way.why == "" {
						w.refused(t, g, name, way)
					}
					w.allowed(t, g, name, way)
				})
			}
		})
	}
}

func slug(way string) string {
	return map[string]string{byCreate: "create", byUpdate: "update", byEphemeral: "ephemeral", byDebug: "debug",
		byImageExec: "image"}[way]
}

func (w world) refused(t *testing.T, g gate, name string, way way) {
	t.Helper()
	var before *corev1.Pod
	target := "bad-" + slug(name)
	if name != byCreate {
		before = podNow(t, w.c, w.ns, target)
	}
	image := way.deny
	if image == "" {
		image = "tools:1"
	}
	_, err := w.try(t, g, name, target, image, way.denyPod, way.denyDebug, way.denyQuery)
	if err == nil {
		t.Fatal("what is to be denied passes")
	}
	s := w.status(t, name, err)
	if s.Code < 400 || s.Code >= 500 || !strings.Contains(s.Message, way.words) {
		t.Errorf("%d %s: %s, want %q", s.Code, s.Reason, s.Message, way.words)
	}
	after, err := w.c.CoreV1().Pods(w.ns).Get(t.Context(), target, metav1.GetOptions{})
	if name == byCreate {
		if !apierrors.IsNotFound(err) {
			t.Errorf("a pod that was denied is there: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(before, after) {
		t.Errorf("the pod has changed:\n%+v\n%+v", before, after)
	}
	if runs := recordsOf(t, w.ns, target); len(runs) > 0 {
		t.Errorf("there are records of it: %v", runs)
	}
	if slices.ContainsFunc(w.n.requests(), func(r string) bool { return strings.Contains(r, "/"+w.ns+"/"+target) }) {
		t.Error("the node was asked")
	}
}

func (w world) allowed(t *testing.T, g gate, name string, way way) {
	t.Helper()
	image := way.allow
	if image == "" {
		image = "tools:1"
	}
	got, err := w.try(t, g, name, "good-"+slug(name), image, way.allowPod, way.allowDebug, way.allowQuery)
	if err != nil {
		t.Fatalf("what is to be allowed is refused: %v", err)
	}
	want := image
	if way.becomes != "" {
		want = way.becomes
	}
	if !strings.Contains(got, want) {
		t.Errorf("it has image %q, want %q", got, want)
	}
}

// try goes one way into a pod and returns what image got in, or ran.
func (w world) try(t *testing.T, g gate, name, target, image string, change func(*corev1.Pod),
	debug func(*corev1.EphemeralContainer), query string) (string, error) {
	t.Helper()
	pods := w.c.CoreV1().Pods(w.ns)
	switch name {
	case byCreate:
		p := pod(target)
		if g.good != nil && strings.HasPrefix(target, "good") {
			g.good(p)
		}
		p.Spec.Containers[0].Image = image
		if change != nil {
			change(p)
		}
		if p.Namespace != "" {
			pods = w.c.CoreV1().Pods(p.Namespace)
		}
		made, err := pods.Create(t.Context(), p, metav1.CreateOptions{})
		return imageOf(made), err
	case byUpdate:
		p := podNow(t, w.c, w.ns, target)
		p.Spec.Containers[0].Image = image
		if change != nil {
			change(p)
		}
		stored, err := pods.Update(t.Context(), p, metav1.UpdateOptions{})
		return imageOf(stored), err
	case byEphemeral:
		p := podNow(t, w.c, w.ns, target)
		e := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug",
			Image: image}}
		if debug != nil {
			debug(&e)
		}
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, e)
		stored, err := pods.UpdateEphemeralContainers(t.Context(), target, p, metav1.UpdateOptions{})
		return debugImageOf(stored), err
	case byDebug:
		_, err := execInto(t, adminConfig(t), "websocket", w.ns, target,
			"stdout=true&ephemeralContainerName=debug&ephemeralContainerImage="+image+query)
		if err != nil {
			return "", err
		}
		return debugImageOf(podNow(t, w.c, w.ns, target)), nil
	}
	return execInto(t, adminConfig(t), "websocket", w.ns, target, "stdout=true&command=ls&image="+image)
}

// status is the Status that refused.
func (w world) status(t *testing.T, name string, err error) metav1.Status {
	t.Helper()
	if name == byDebug || name == byImageExec {
		return statusOf(t, err)
	}
	if s, ok := err.(apierrors.APIStatus); ok {
		return s.Status()
	}
	t.Fatalf("not a Status: %v", err)
	return metav1.Status{}
}

func imageOf(p *corev1.Pod) string {
	if p == nil || len(p.Spec.Containers) == 0 {
		return ""
	}
	return p.Spec.Containers[0].Image
}

func debugImageOf(p *corev1.Pod) string {
	if p == nil || len(p.Spec.EphemeralContainers) == 0 {
		return ""
	}
	return p.Spec.EphemeralContainers[len(p.Spec.EphemeralContainers)-1].Image
}

// label puts labels on a namespace.
func (w world) label(t *testing.T, labels map[string]string) {
	t.Helper()
	ns, err := w.c.CoreV1().Namespaces().Get(t.Context(), w.ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range labels {
		ns.Labels[key] = value
	}
	if _, err := w.c.CoreV1().Namespaces().Update(t.Context(), ns, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// until the test ends.
func (w world) cleanUp(t *testing.T, remove func(context.Context) error) {
	t.Cleanup(func() {
		if err := remove(context.Background()); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}
