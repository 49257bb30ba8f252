// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/why"
)

// kinds are what can be asked about, by the words that kubectl has for them.
func kinds() map[string]string {
	return map[string]string{"pod": "Pod", "pods": "Pod", "po": "Pod",
		"deployment": "Deployment", "deployments": "Deployment", "deploy": "Deployment",
		"deployment.apps": "Deployment", "statefulset": "StatefulSet", "statefulsets": "StatefulSet",
		"sts": "StatefulSet", "statefulset.apps": "StatefulSet", "daemonset": "DaemonSet", "daemonsets": "DaemonSet",
		"ds": "DaemonSet", "daemonset.apps": "DaemonSet", "replicaset": "ReplicaSet", "replicasets": "ReplicaSet",
		"rs": "ReplicaSet", "replicaset.apps": "ReplicaSet", "job": "Job", "jobs": "Job", "job.batch": "Job"}
}

// Parse reads what is asked about: NAME or KIND/NAME.
func Parse(text string) (kind, name string, err error) {
	word, name, ok := strings.Cut(text, "/")
	if !ok {
		name = text
	} else if kind = kinds()[strings.ToLower(word)]; kind == "" {
		return "", "",
			fmt.Errorf("%s: use the name of a pod, or pod/NAME, deployment/NAME, statefulset/NAME, daemonset/NAME, "+
				"replicaset/NAME or job/NAME", text)
	}
	if name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q names no pod: give the name of one", text)
	}
	return kind, name, nil
}

// Missing says that there is nothing of a name.
type Missing struct{ text string }

func (m *Missing) Error() string { return m.text }

// owner is an object that makes pods, of whatever kind.
type owner struct {
	meta     metav1.ObjectMeta
	selector *metav1.LabelSelector
	workload why.Workload
}

// get fetches an object that makes pods.
func (g *gatherer) get(ctx context.Context, kind, name string) (*owner, error) {
	o := &owner{workload: why.Workload{Kind: kind, Namespace: g.namespace, Name: name, Wanted: 1}}
	wanted := func(n *int32) {
		if n != nil {
			o.workload.Wanted = *n
		}
	}
	var err error
	switch kind {
	case "Deployment":
		var d *appsv1.Deployment
		if d, err = g.client.AppsV1().Deployments(g.namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
			o.meta, o.selector = d.ObjectMeta, d.Spec.Selector
			wanted(d.Spec.Replicas)
			for _, c := range d.Status.Conditions {
				o.condition(string(c.Type), string(c.Status), c.Reason, c.Message)
			}
		}
	case "StatefulSet":
		var s *appsv1.StatefulSet
		if s, err = g.client.AppsV1().StatefulSets(g.namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
			o.meta, o.selector = s.ObjectMeta, s.Spec.Selector
			wanted(s.Spec.Replicas)
		}
	case "DaemonSet":
		var d *appsv1.DaemonSet
		if d, err = g.client.AppsV1().DaemonSets(g.namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
			o.meta, o.selector, o.workload.Wanted = d.ObjectMeta, d.Spec.Selector, d.Status.DesiredNumberScheduled
		}
	case "ReplicaSet":
		var r *appsv1.ReplicaSet
		if r, err = g.client.AppsV1().ReplicaSets(g.namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
			o.meta, o.selector = r.ObjectMeta, r.Spec.Selector
			wanted(r.Spec.Replicas)
			for _, c := range r.Status.Conditions {
				o.condition(string(c.Type), string(c.Status), c.Reason, c.Message)
			}
		}
	case "Job":
		var j *batchv1.Job
		if j, err = g.client.BatchV1().Jobs(g.namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
			o.meta, o.selector = j.ObjectMeta, j.Spec.Selector
			wanted(j.Spec.Parallelism)
			o.workload.Suspended = j.Spec.Suspend != nil && *j.Spec.Suspend
		}
	default:
		err = apierrors.NewNotFound(corev1.Resource(strings.ToLower(kind)), name)
	}
	return o, err
}

func (o *owner) condition(kind, status, reason, message string) {
	o.workload.Conditions = append(o.workload.Conditions, why.Condition{Of: o.workload.Kind + " " + o.workload.Name,
		Type: kind, Status: status, Reason: reason, Message: message})
}

// workload gathers what is known of something that makes pods: about the pod of it that is worst off, or itself.
func (g *gatherer) workload(ctx context.Context, kind, name string) error {
	all := []string{kind}
	if kind == "" {
		all = []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"}
	}
	var forbidden []string
	for _, k := range all {
		o, err := g.get(ctx, k, name)
		switch {
		case apierrors.IsNotFound(err) && kind == "":
			continue
		case apierrors.IsForbidden(err) && kind == "":
			forbidden = append(forbidden, strings.ToLower(k)+"s")
			continue
		case err != nil:
			return err
		}
		return g.of(ctx, o)
	}
	text := fmt.Sprintf("there is no pod %s in namespace %s, nor a Deployment, StatefulSet, DaemonSet, ReplicaSet or Job of that name",
		name, g.namespace)
	if len(forbidden) > 0 {
		text = fmt.Sprintf("there is no pod %s in namespace %s; whether a workload has that name you may not see (get %s)", name,
			g.namespace, strings.Join(forbidden, ", "))
	}
	return &Missing{fmt.Sprintf("%s: see kubectl get pods -n %s", text, g.namespace)}
}

// of gathers about one of a workload's pods, or if there are none about the workload.
func (g *gatherer) of(ctx context.Context, o *owner) error {
	selector, err := metav1.LabelSelectorAsSelector(o.selector)
	if err != nil {
		return err
	}
	pods, err := g.client.CoreV1().Pods(g.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return err
	}
	if i := why.Worst(pods.Items); i >= 0 {
		g.facts.Via = fmt.Sprintf("%s %s has %d pods; this is the one that is worst off", o.workload.Kind,
			o.workload.Name, len(pods.Items))
		if len(pods.Items) == 1 {
			g.facts.Via = fmt.Sprintf("%s %s has one pod", o.workload.Kind, o.workload.Name)
		}
		g.pod(ctx, &pods.Items[i])
		return nil
	}
	g.facts.Workload = &o.workload
	g.facts.Owners = []why.Owner{{Kind: o.workload.Kind, Name: o.workload.Name, Managed: o.meta.ManagedFields}}
	g.events(ctx, o.meta.UID)
	if o.workload.Kind != "Deployment" {
		return nil
	}
	sets, err := g.client.AppsV1().ReplicaSets(g.namespace).List(ctx,
		metav1.ListOptions{LabelSelector: selector.String()})
	if g.failed(err, "its ReplicaSets", "list replicasets.apps") {
		return nil
	}
	for i := range sets.Items {
		if metav1.IsControlledBy(&sets.Items[i], &o.meta) {
			g.events(ctx, sets.Items[i].UID)
		}
	}
	return nil
}

// owners fetches what has made the pod, up to what a person has written.
func (g *gatherer) owners(ctx context.Context, pod *corev1.Pod) {
	ref := metav1.GetControllerOf(pod)
	var top *owner
	for range 3 {
		if ref == nil {
			break
		}
		o, err := g.get(ctx, ref.Kind, ref.Name)
		if apierrors.IsNotFound(err) || g.failed(err, ref.Kind+" "+ref.Name, "get "+strings.ToLower(ref.Kind)+"s") {
			break
		}
		if o.meta.UID != ref.UID {
			break
		}
		top = o
		ref = metav1.GetControllerOf(&o.meta)
	}
	if top == nil {
		return
	}
	made := why.Owner{Kind: top.workload.Kind, Name: top.workload.Name, Managed: top.meta.ManagedFields}
	if made.Kind == "Deployment" {
		made.Rollout, made.Diff = g.rollout(ctx, top, metav1.GetControllerOf(pod).UID)
	}
	g.facts.Owners = []why.Owner{made}
	g.events(ctx, top.meta.UID)
}

// rollout says in what the template of a ReplicaSet differs from that of the one before it, and since when there is
// one.
func (g *gatherer) rollout(ctx context.Context, o *owner, uid types.UID) (since time.Time, diff []string) {
	selector, err := metav1.LabelSelectorAsSelector(o.selector)
	if err != nil {
		return since, nil
	}
	sets, err := g.client.AppsV1().ReplicaSets(g.namespace).List(ctx,
		metav1.ListOptions{LabelSelector: selector.String()})
	if g.failed(err, "its ReplicaSets", "list replicasets.apps") {
		return since, nil
	}
	var own, before *appsv1.ReplicaSet
	for i := range sets.Items {
		if s := &sets.Items[i]; s.UID == uid {
			own = s
		}
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		if own != nil && metav1.IsControlledBy(s, &o.meta) && revision(s) < revision(own) &&
			(before == nil || revision(s) > revision(before)) {
			before = s
		}
	}
	if before == nil {
		return since, nil
	}
	return own.CreationTimestamp.Time, why.TemplateDiff(&before.Spec.Template.Spec, &own.Spec.Template.Spec)
}

// revision numbers the ReplicaSets of a Deployment.
func revision(s *appsv1.ReplicaSet) int {
	n, _ := strconv.Atoi(s.Annotations["deployment.kubernetes.io/revision"]) // 0 without
	return n
}
