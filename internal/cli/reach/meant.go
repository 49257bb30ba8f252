// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Kinds is the grammar of what has pods, for help texts.
const Kinds = "deployment, statefulset, daemonset, replicaset, job or service"

// owner is an object by which one of its pods is meant.
type owner struct {
	kind, name string
	uid        types.UID
	selector   labels.Selector
}

// kindOf is the name of a kind of objects that have pods, by what kubectl calls it; empty for another word.
func kindOf(word string) string {
	for kind, words := range map[string][]string{"pod": {"pods", "po"}, "deployment": {"deployments", "deploy"},
		"statefulset": {"statefulsets", "sts"}, "daemonset": {"daemonsets", "ds"},
		"replicaset": {"replicasets", "rs"}, "job": {"jobs"}, "service": {"services", "svc"}} {
		word, _, _ := strings.Cut(strings.ToLower(word), ".") // deployment.apps
		if word == kind || slices.Contains(words, word) {
			return kind
		}
	}
	return ""
}

// IsKind reports whether a word is that of a kind before a name, as in deployment/web.
func IsKind(word string) bool { return kindOf(word) != "" }

// PodMeant is the pod that a text means: its own name, pod/NAME, or KIND/NAME for one of an object's pods, about which
// note says something to the user.
func (f *Flags) PodMeant(ctx context.Context, namespace, text string) (pod, note string, err error) {
	word, name, slash := strings.Cut(text, "/")
	if !slash {
		return text, "", nil
	}
	kind := kindOf(word)
	switch {
	case kind == "":
		return "", "",
			fmt.Errorf("%q: there is no kind %q to take a pod of: give the name of a pod, or %s before a name, "+
				"as in deployment/web", text, word, Kinds)
	case name == "" || strings.Contains(name, "/"):
		return "", "", fmt.Errorf("%q: want %s/NAME", text, kind)
	case kind == "pod":
		return name, "", nil
	}
	c, err := f.Connect()
	if err != nil {
		return "", "", err
	}
	namespace = cmp.Or(namespace, f.Namespace)
	o, err := c.owner(ctx, kind, namespace, name)
	if err != nil {
		return "", "", c.RoleAdvice(ctx, err, LookAtSessions, namespace)
	}
	list, err := c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: o.selector.String()})
	if err != nil {
		return "", "", c.RoleAdvice(ctx, err, LookAtSessions, namespace)
	}
	return choose(o, list.Items)
}

// owner asks for an object that has pods.
func (c *Client) owner(ctx context.Context, kind, namespace, name string) (o owner, err error) {
	var meta metav1.ObjectMeta
	var by *metav1.LabelSelector
	get := metav1.GetOptions{}
	switch kind {
	case "deployment":
		d, gerr := c.AppsV1().Deployments(namespace).Get(ctx, name, get)
		meta, by, err = d.ObjectMeta, d.Spec.Selector, gerr
	case "statefulset":
		s, gerr := c.AppsV1().StatefulSets(namespace).Get(ctx, name, get)
		meta, by, err = s.ObjectMeta, s.Spec.Selector, gerr
	case "daemonset":
		d, gerr := c.AppsV1().DaemonSets(namespace).Get(ctx, name, get)
		meta, by, err = d.ObjectMeta, d.Spec.Selector, gerr
	case "replicaset":
		r, gerr := c.AppsV1().ReplicaSets(namespace).Get(ctx, name, get)
		meta, by, err = r.ObjectMeta, r.Spec.Selector, gerr
	case "job":
		j, gerr := c.BatchV1().Jobs(namespace).Get(ctx, name, get)
		meta, by, err = j.ObjectMeta, j.Spec.Selector, gerr
	case "service":
		s, gerr := c.CoreV1().Services(namespace).Get(ctx, name, get)
		if gerr == nil && len(s.Spec.Selector) == 0 {
			return o, fmt.Errorf("service/%s chooses no pods by their labels: name a pod", name)
		}
		meta, by, err = s.ObjectMeta, &metav1.LabelSelector{MatchLabels: s.Spec.Selector}, gerr
	}
	if err != nil {
		return o, err
	}
	o = owner{kind: kind, name: meta.Name, uid: meta.UID}
	o.selector, err = metav1.LabelSelectorAsSelector(by)
	return o, err
}

// choose takes the newest of an object's pods that run, or if none does the newest of them. (Pure.)
func choose(o owner, pods []corev1.Pod) (pod, note string, err error) {
	pods = slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return !o.has(&p) })
	if len(pods) == 0 {
		return "", "", fmt.Errorf("%s/%s has no pods", o.kind, o.name)
	}
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(rank(&b), rank(&a)), b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name))
	})
	best, run := &pods[0], 0
	for i := range pods {
		if rank(&pods[i]) >= running {
			run++
		}
	}
	switch {
	case run == 0:
		note = fmt.Sprintf("the newest of its %d, none of which is running", len(pods))
		if len(pods) == 1 {
			note = "its only one, which is not running"
		}
	case run == 1:
		note = "the only one that runs"
	default:
		note = fmt.Sprintf("the newest of %d that run", run)
	}
	return best.Name, fmt.Sprintf("%s/%s: pod %s, %s", o.kind, o.name, best.Name, note), nil
}

// has reports whether a pod is of the object, and not only labelled as its pods are. A Service has those so labelled.
func (o owner) has(p *corev1.Pod) bool {
	by := metav1.GetControllerOf(p)
	switch o.kind {
	case "service":
		return true
	case "deployment": // by a ReplicaSet, whose name begins with its own
		return by != nil && by.Kind == "ReplicaSet" && strings.HasPrefix(by.Name, o.name+"-")
	}
	return by != nil && by.UID == o.uid
}

// How far a pod is, for who is to choose one.
const (
	over = iota // it has ended, or goes
	waiting
	running
	ready
)

func rank(p *corev1.Pod) int {
	switch {
	case p.DeletionTimestamp != nil, p.Status.Phase == corev1.PodSucceeded, p.Status.Phase == corev1.PodFailed:
		return over
	case p.Status.Phase != corev1.PodRunning:
		return waiting
	}
	if c := podspec.Condition(&p.Status, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		return ready
	}
	return running
}

// otherTime bounds the search for what else has a name, which is an extra.
const otherTime = 2 * time.Second

// OrOthers adds to the error for a pod that is not there what else has its name, by which a pod could be meant.
func (f *Flags) OrOthers(ctx context.Context, namespace, name string, err error) error {
	if err == nil || !apierrors.IsNotFound(err) || !strings.Contains(err.Error(),
		fmt.Sprintf("pods %q not found", name)) {
		return err
	}
	c, cerr := f.Connect()
	if cerr != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, otherTime)
	defer cancel()
	kinds := []string{"deployment", "statefulset", "daemonset", "job", "service"}
	found := make([]string, len(kinds))
	var work errgroup.Group
	for i, kind := range kinds {
		work.Go(func() error {
			if _, err := c.owner(ctx, kind, cmp.Or(namespace, f.Namespace), name); err == nil {
				found[i] = kind + "/" + name
			}
			return nil
		})
	}
	_ = work.Wait() // none of them fails
	if found = slices.DeleteFunc(found, func(s string) bool { return s == "" }); len(found) == 0 {
		return err
	}
	what := "it means one of its pods"
	if len(found) > 1 {
		what = "each means one of its pods"
	}
	if exit, is := errors.AsType[*cmdline.Exit](err); is { // its message is that of the error in it
		return cmdline.ExitWith(exit.Code, fmt.Errorf("%w\nthere is %s: %s", exit.Err, strings.Join(found, " and "),
			what))
	}
	return fmt.Errorf("%w\nthere is %s: %s", err, strings.Join(found, " and "), what)
}
