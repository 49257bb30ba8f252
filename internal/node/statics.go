// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/static"
	"github.com/wherryproject/wherry/internal/node/staticpods"
	"github.com/wherryproject/wherry/internal/oneline"
)

// StaticPods says where the node has pods of its own from (PL-12).
type StaticPods struct {
	Folder      string        // of manifests, or a single one; "": none
	FolderEvery time.Duration // how often it is looked through beside being watched; 0: 20 s
	URL         string        // of a manifest; "": none
	URLHeader   http.Header
	URLEvery    time.Duration // how often it is fetched; 0: 20 s
}

// StaticFolder is where an agent with this data folder remembers its static pods.
func StaticFolder(dataDir string) string { return filepath.Join(dataDir, "static") }

// standalone reports whether the agent has no API server, and static pods alone.
func (a *Agent) standalone() bool { return a.cfg.Client == nil }

func (a *Agent) newStatics() (*staticpods.Keeper, error) {
	s := a.cfg.Static
	return staticpods.New(staticpods.Config{Node: a.cfg.NodeName, Folder: s.Folder, FolderEvery: s.FolderEvery,
		URL: s.URL, URLHeader: s.URLHeader, URLEvery: s.URLEvery, State: StaticFolder(a.cfg.DataDir), Host: a,
		Logger: a.log})
}

// startStatics hands the static pods to their workers.
func (a *Agent) startStatics(ctx context.Context) error {
	if !a.statics.Idle() || a.standalone() { // until the API server has answered with its Node object
		node := a.cfg.Registration.Object(a.cfg.NodeName)
		node.Status = a.nodeStatus(ctx, nil)
		a.admission.setNode(node)
	}
	return a.statics.Start(ctx)
}

// BeginStatic is part of [staticpods.Host].
func (a *Agent) BeginStatic(ctx context.Context, pod *corev1.Pod) {
	a.metrics.Arrived(pod, time.Now())
	a.history.Pod(pod, time.Now())
	a.admission.judgeStatic(pod)
	a.hand(ctx, pod)
}

// EndStatic is part of [staticpods.Host].
func (a *Agent) EndStatic(ctx context.Context, pod *corev1.Pod) {
	a.history.Pod(pod, time.Now())
	a.hand(ctx, pod)
}

// LeftStatic is part of [staticpods.Host].
func (a *Agent) LeftStatic(pod *corev1.Pod) {
	a.metrics.Gone(pod.UID)
	a.history.Removed(pod, time.Now())
	a.left(pod.UID)
	a.admission.forget(pod.UID)
	a.mirrors.due(static.Key(pod))
}

// StaticChanged is part of [staticpods.Host].
func (a *Agent) StaticChanged() { a.mirrors.dueAll() }

// mostOfMessage is how long an event's message may be.
const mostOfMessage = 1000

// StaticTrouble is part of [staticpods.Host].
func (a *Agent) StaticTrouble(place, message string) {
	if !strings.HasPrefix(message, place) {
		message = place + ": " + message
	}
	a.nodeEvent(corev1.EventTypeWarning, "InvalidStaticPod", oneline.Cut(message, mostOfMessage))
}

// nodeEvent records an event of the node itself.
func (a *Agent) nodeEvent(eventType, reason, message string) {
	a.events.to.Event(&corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: a.cfg.NodeName,
		UID: nodeUID(a.cfg.NodeName)}, eventType, reason, message)
}

// saveStatic stores a static pod's status: here, and later, for people, in its mirror pod.
func (a *Agent) saveStatic(_ context.Context, pod *corev1.Pod, _, to *corev1.PodStatus) (*corev1.Pod, error) {
	if err := a.statics.Save(pod.UID, to); err != nil {
		return nil, err
	}
	now := *pod
	now.Status = *to
	a.admission.count(&now)
	return nil, nil
}

// pullSecrets are those of a pod, or of its account. A static pod has neither.
func (a *Agent) pullSecrets(ctx context.Context, pod *corev1.Pod) ([]*corev1.Secret, []string, error) {
	if a.standalone() || a.statics.Owns(pod.UID) {
		return nil, nil, nil
	}
	return a.sources.PullSecrets(ctx, pod)
}
