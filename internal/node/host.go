// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/features"
	"github.com/wherryproject/wherry/internal/node/httpapi"
	"github.com/wherryproject/wherry/internal/node/logs"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/work"
	"github.com/wherryproject/wherry/internal/podspec"
)

func (a *Agent) newAPI() (*httpapi.Server, error) {
	var execs httpapi.ImageExec
	why := a.cfg.NoImageRuntime
	switch {
	case !a.cfg.Features.Enabled(features.ImageExec):
		why = fmt.Sprintf("image exec is not implemented: the feature gate %s is off at this node", features.ImageExec)
	case a.execs != nil:
		execs = a.execs
	}
	c := httpapi.Config{
		MinTLSVersion: a.cfg.MinTLSVersion, CipherSuites: a.cfg.CipherSuites, Host: host{a}, Conns: a.cfg.Conns,
		ReadOnlyConns: a.cfg.ReadOnlyConns, ImageExec: execs, NoImageExec: why, CRI: a.cfg.CRI, Figures: a.figures,
		Attach: a.cfg.Attach, Exec: a.cfg.Exec, Streams: a.cfg.Streams, Forward: a.cfg.Forward, Logs: logs.Read,
		Timeline: a.timeline(), NodeName: a.cfg.NodeName, Certificate: a.cfg.Certificate,
		GetCertificate: a.cfg.GetCertificate, ClientCAs: a.cfg.ClientCAs, Metrics: a.metrics.Handler(),
		Probes: a.metrics.Probes(), Checkpoints: filepath.Join(a.cfg.DataDir, "checkpoints"), Configz: a.configz(),
		NodeStats: a.nodeStats, PodDisk: (&podDisks{agent: a}).of, Cgroups: a.podCgroups, Health: a.health,
		LogDir: a.cfg.Logs.Pods, SystemLogs: a.cfg.SystemLogs, Logger: a.log}
	if !a.standalone() { // else only the node's administrator may use it
		access, err := newAccess(a.cfg.Client)
		if err != nil {
			return nil, err
		}
		c.Tokens, c.Authorize = access.tokens, access.authorize
	}
	return httpapi.New(c)
}

// timeline is that of a pod, which the API server may know by another UID.
func (a *Agent) timeline() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("uid") != "" {
			q.Set("uid", string(a.mirrors.translate(types.UID(q.Get("uid")))))
			r = r.Clone(r.Context())
			r.URL.RawQuery = q.Encode()
		}
		a.history.ServeHTTP(w, r)
	})
}

// health is what /healthz says: an agent whose runtime does not answer cannot run pods.
func (a *Agent) health() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if why := a.runtimeTrouble(ctx); why != "" {
		return errors.New(why)
	}
	return nil
}

// host is the agent as the kubelet's API sees it.
type host struct{ a *Agent }

// Pods is part of [httpapi.Host].
func (h host) Pods() (out []*corev1.Pod) {
	for _, v := range h.views() {
		out = append(out, v.Pod)
	}
	return out
}

func (h host) views() []work.View {
	if h.a.workers == nil {
		return nil
	}
	return h.a.workers.Views()
}

// Pod is part of [httpapi.Host].
func (h host) Pod(namespace, name string) (*corev1.Pod, bool) {
	var found *corev1.Pod
	for _, v := range h.views() {
		if p := v.Pod; p.Namespace == namespace && p.Name == name && (found == nil || p.DeletionTimestamp == nil) {
			found = p
		}
	}
	return found, found != nil
}

// UID is part of [httpapi.Host].
func (h host) UID(uid string) types.UID { return h.a.mirrors.translate(types.UID(uid)) }

// Changed is part of [httpapi.Host].
func (h host) Changed() <-chan struct{} { return h.a.changes.wait() }

func (h host) view(uid types.UID) (work.View, error) {
	if h.a.workers != nil {
		if v, ok := h.a.workers.View(uid); ok {
			return v, nil
		}
	}
	return work.View{}, fmt.Errorf("pod %s is not on this node", uid)
}

// attempts returns the newest attempt of a container and the one before it.
func attempts(seen plan.Seen, name string) (newest, before *plan.Container) {
	for i := range seen.Containers {
		c := &seen.Containers[i]
		switch {
		case c.Name != name:
		case newest == nil || c.Attempt > newest.Attempt:
			newest, before = c, newest
		case before == nil || c.Attempt > before.Attempt:
			before = c
		}
	}
	return newest, before
}

// shown returns the attempt that logs, exec and attach speak of: the newest, unless that is only just being made.
func shown(seen plan.Seen, name string) *plan.Container {
	newest, before := attempts(seen, name)
	if newest != nil && newest.StartedAt.IsZero() && newest.FinishedAt.IsZero() && before != nil {
		return before
	}
	return newest
}

// ContainerID is part of [httpapi.Host].
func (h host) ContainerID(uid types.UID, name string) (string, error) {
	v, err := h.view(uid)
	if err != nil {
		return "", err
	}
	return containerID(v, name)
}

// containerID finds a container's id. Until the worker has looked at the pod for the first time, after a restart of the
// agent, that of the stored status holds: who runs has not begun to wait for that. (Pure.)
func containerID(v work.View, name string) (string, error) {
	if c := shown(v.Seen, name); c != nil {
		return c.ID, nil
	}
	if s := podspec.FindStatus(&v.Pod.Status, name); len(v.Seen.Sandboxes)+len(v.Seen.Containers) == 0 && s != nil &&
		s.State.Running != nil {
		if _, id, ok := strings.Cut(s.ContainerID, "://"); ok {
			return id, nil
		}
	}
	return "", fmt.Errorf("container %q in pod %q is waiting to start: %s", name, v.Pod.Name, waitingFor(v.Pod, name))
}

func waitingFor(p *corev1.Pod, name string) string {
	switch s := podspec.FindStatus(&p.Status, name); {
	case s == nil || s.State.Waiting == nil:
		return "ContainerCreating"
	case s.State.Waiting.Message != "":
		return s.State.Waiting.Reason + ": " + s.State.Waiting.Message
	default:
		return s.State.Waiting.Reason
	}
}

// SandboxID is part of [httpapi.Host].
func (h host) SandboxID(uid types.UID) (string, error) {
	v, err := h.view(uid)
	if err != nil {
		return "", err
	}
	var newest *plan.Sandbox
	for i := range v.Seen.Sandboxes {
		if s := &v.Seen.Sandboxes[i]; newest == nil || s.Attempt > newest.Attempt {
			newest = s
		}
	}
	if newest == nil || !newest.Ready {
		return "", fmt.Errorf("pod %q is not running: it has no sandbox that is ready", v.Pod.Name)
	}
	return newest.ID, nil
}

// LogPath is part of [httpapi.Host].
func (h host) LogPath(uid types.UID, name string, previous bool) (string, error) {
	v, err := h.view(uid)
	if err != nil {
		return "", err
	}
	newest, before := attempts(v.Seen, name)
	switch {
	case previous && newest != nil && newest.Exited() && before == nil && waits(v.Pod, name):
		before = newest // in back-off, the one that crashed is the previous one
	case previous && before == nil:
		return "", fmt.Errorf("previous terminated container %q in pod %q not found", name, v.Pod.Name)
	case !previous && newest == nil && h.a.kept(v.Pod, name) != "":
		return h.a.kept(v.Pod, name), nil
	case !previous && newest == nil:
		return "", fmt.Errorf("container %q in pod %q is waiting to start: %s", name, v.Pod.Name,
			waitingFor(v.Pod, name))
	}
	if previous {
		return h.a.cfg.Logs.File(v.Pod, name, before.Attempt), nil
	}
	return h.a.cfg.Logs.File(v.Pod, name, shown(v.Seen, name).Attempt), nil
}

// kept is the log of a container that has ended and was removed, for the sake of the disk; "" if there is none.
func (a *Agent) kept(p *corev1.Pod, name string) string {
	s := podspec.FindStatus(&p.Status, name)
	if s == nil || s.State.Terminated == nil {
		return ""
	}
	file := a.cfg.Logs.File(p, name, uint32(max(s.RestartCount, 0)))
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

func waits(p *corev1.Pod, name string) bool {
	s := podspec.FindStatus(&p.Status, name)
	return s != nil && s.State.Waiting != nil
}
