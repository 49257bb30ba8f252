// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/podspec"
	"github.com/wherryproject/wherry/internal/podtime"
	"github.com/wherryproject/wherry/internal/serverkind"
	"github.com/wherryproject/wherry/internal/why"
)

const (
	logLines = 20
	logBytes = 64 << 10
)

// About gathers what is known of a pod in a namespace, or of something that makes pods; of an empty kind whatever has
// the name. What cannot be looked at is among the facts, with the right that is missing; an error says that there is
// nothing to answer about.
func About(ctx context.Context, client kubernetes.Interface, namespace, kind, name string) (why.Facts, error) {
	g := &gatherer{client: client, namespace: namespace}
	return g.about(ctx, kind, name)
}

// gatherer gathers the facts about a pod.
type gatherer struct {
	client    kubernetes.Interface
	namespace string
	facts     why.Facts
}

// failed notes that something could not be looked at, and reports whether it was so.
func (g *gatherer) failed(err error, what, right string) bool {
	if err == nil {
		return false
	}
	u := why.Unseen{What: what}
	if apierrors.IsForbidden(err) {
		u.Right = right
	} else {
		u.Why = err.Error()
	}
	if !slices.Contains(g.facts.Unseen, u) {
		g.facts.Unseen = append(g.facts.Unseen, u)
	}
	return true
}

func (g *gatherer) about(ctx context.Context, kind, name string) (why.Facts, error) {
	g.facts.Now = time.Now()
	if kind == "" || kind == "Pod" {
		pod, err := g.client.CoreV1().Pods(g.namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			g.pod(ctx, pod)
			return g.facts, nil
		}
		if kind == "Pod" || !apierrors.IsNotFound(err) {
			return g.facts, err
		}
	}
	return g.facts, g.workload(ctx, kind, name)
}

// pod gathers all about a pod.
func (g *gatherer) pod(ctx context.Context, pod *corev1.Pod) {
	g.facts.Pod = pod
	g.events(ctx, pod.UID)
	if static := pod.Annotations[corev1.MirrorPodAnnotationKey]; static != "" {
		g.events(ctx, types.UID(static)) // its node does not know the UID that it has here
	}
	g.owners(ctx, pod)
	g.objects(ctx, pod)
	g.nodes(ctx, pod)
	g.logs(ctx, pod)
	g.usage(ctx, pod)
	g.names(ctx, pod)
	if why.Servants(g.facts) {
		g.services(ctx)
	}
}

// events fetches the events of an object.
func (g *gatherer) events(ctx context.Context, uid types.UID) {
	list, err := g.client.CoreV1().Events(g.namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(uid)).String()})
	if !g.failed(err, "events", "list events") {
		g.facts.Events = append(g.facts.Events, list.Items...)
	}
}

// logs fetches the ends of the logs that matter.
func (g *gatherer) logs(ctx context.Context, pod *corev1.Pod) {
	for _, w := range why.Logs(pod) {
		text, err := g.log(ctx, pod.Name, w)
		if err != nil && w.Previous && apierrors.IsBadRequest(err) {
			w.Previous = false // the run before is not kept any more
			text, err = g.log(ctx, pod.Name, w)
		}
		if g.failed(err, "log of "+w.Container, "get pods/log") {
			continue
		}
		lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
		if text != "" {
			g.facts.Logs = append(g.facts.Logs, why.Log{Container: w.Container, Previous: w.Previous, Lines: lines})
		}
	}
}

func (g *gatherer) log(ctx context.Context, pod string, w why.WantedLog) (string, error) {
	stream, err := g.client.CoreV1().Pods(g.namespace).GetLogs(pod, &corev1.PodLogOptions{Container: w.Container,
		Previous: w.Previous, TailLines: ptr.To[int64](logLines), LimitBytes: ptr.To[int64](logBytes)}).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, logBytes))
	return string(text), err
}

// kills finds what this machine's kernel has logged of OOM kills, if the pod is on it.
func (g *gatherer) kills(pod *corev1.Pod) {
	all := kernelKills()
	for _, s := range podspec.OwnStatuses(&pod.Status) {
		for _, t := range []*corev1.ContainerStateTerminated{s.LastTerminationState.Terminated, s.State.Terminated} {
			if t != nil {
				_, id, _ := strings.Cut(t.ContainerID, "://")
				g.facts.Kills = append(g.facts.Kills, killsOf(all, id)...)
			}
		}
	}
}

// usage asks how much memory containers use, if one was killed for want of it.
func (g *gatherer) usage(ctx context.Context, pod *corev1.Pod) {
	killed := false
	for _, s := range podspec.OwnStatuses(&pod.Status) {
		for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
			killed = killed || t != nil && t.Reason == "OOMKilled"
		}
	}
	if !killed {
		return
	}
	g.kills(pod)
	body, err := g.client.CoreV1().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/namespaces", g.namespace,
		"pods", pod.Name).DoRaw(ctx)
	if apierrors.IsForbidden(err) {
		g.failed(err, "how much memory it uses", "get pods.metrics.k8s.io")
	}
	if err != nil {
		return // no such API, or nothing is measured while nothing runs
	}
	var m struct {
		Containers []struct {
			Name  string
			Usage map[string]string
		}
	}
	if json.Unmarshal(body, &m) != nil {
		return
	}
	g.facts.Usage = map[string]string{}
	for _, c := range m.Containers {
		if s := podspec.FindStatus(&pod.Status, c.Name); s != nil && s.State.Running != nil {
			g.facts.Usage[c.Name] = c.Usage["memory"]
		}
	}
}

// names asks a node of Wherry's which names the pod has asked for.
func (g *gatherer) names(ctx context.Context, pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		return
	}
	version, err := g.client.CoreV1().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil || !serverkind.Is(version) {
		return
	}
	h, err := podtime.Source{Client: g.client}.Names(ctx, pod.Namespace, pod.Name)
	if g.failed(err, "names that it has asked for", "get pods/timeline") || h.UID != string(pod.UID) {
		return
	}
	for _, n := range h.Names {
		g.facts.Names = append(g.facts.Names, why.Name{At: n.At, Name: n.Name, Code: n.Code})
	}
}

// nodes fetches the nodes that matter, and for a pod without one what pods ask for on each.
func (g *gatherer) nodes(ctx context.Context, pod *corev1.Pod) {
	all, own := why.Nodes(pod)
	if own != "" {
		node, err := g.client.CoreV1().Nodes().Get(ctx, own, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			g.facts.Nodes = []why.Node{{Name: own, Ready: corev1.ConditionUnknown,
				Words: "there is no such node any more"}}
		} else if !g.failed(err, "node "+own, "get nodes") {
			g.facts.Nodes = []why.Node{nodeOf(node)}
		}
	}
	if !all {
		return
	}
	list, err := g.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if g.failed(err, "nodes", "list nodes") {
		return
	}
	for i := range list.Items {
		g.facts.Nodes = append(g.facts.Nodes, nodeOf(&list.Items[i]))
	}
	pods, err := g.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"})
	if g.failed(err, "what is free on the nodes", "list pods in all namespaces") {
		return
	}
	for i := range g.facts.Nodes {
		n := &g.facts.Nodes[i]
		n.Requested = corev1.ResourceList{}
		for j := range pods.Items {
			if p := &pods.Items[j]; p.Spec.NodeName == n.Name {
				n.Pods++
				for name, q := range podspec.EffectiveRequests(p) {
					sum := n.Requested[name].DeepCopy()
					sum.Add(q)
					n.Requested[name] = sum
				}
			}
		}
	}
}

func nodeOf(node *corev1.Node) why.Node {
	n := why.Node{Name: node.Name, Labels: node.Labels, Taints: node.Spec.Taints,
		Unschedulable: node.Spec.Unschedulable, Allocatable: node.Status.Allocatable}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			n.Ready, n.Words = c.Status, strings.TrimSpace(fmt.Sprintf("%s %s", c.Reason, c.Message))
		}
	}
	return n
}
