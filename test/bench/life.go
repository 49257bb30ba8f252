// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/podtime"
	"github.com/wherryproject/wherry/internal/timeline"
)

// lifePod has three sidecars with a startup probe each, an init and a main.
func lifePod(name string) *corev1.Pod {
	p := pod(name)
	always := corev1.ContainerRestartPolicyAlways
	probe := &corev1.Probe{PeriodSeconds: 1,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	for i := range 3 {
		p.Spec.InitContainers = append(p.Spec.InitContainers,
			corev1.Container{Name: fmt.Sprintf("sidecar%d", i), Image: imageName,
				RestartPolicy: &always, StartupProbe: probe})
	}
	p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "init", Image: imageName,
		Command: []string{"true"}})
	return p
}

// sidecars: start and end of a pod with all that a pod may have, against the same calls in the same order with the
// probes' own tries, bare and in a shell.
func (b *bench) sidecars(ctx context.Context) ([]result, error) {
	ends, err := b.hearEnds(ctx)
	if err != nil {
		return nil, err
	}
	defer ends.stop()
	i := 0
	gaps := samples{}
	ours := func(ctx context.Context) (map[string]time.Duration, error) {
		i++
		return b.lifeOurs(ctx, fmt.Sprintf("life-%d", i), ends, gaps)
	}
	bare := func(ctx context.Context) (map[string]time.Duration, error) {
		return b.lifeBare(ctx, fmt.Sprintf("life-%d", i))
	}
	shell := func(ctx context.Context) (map[string]time.Duration, error) {
		return b.lifeShell(ctx, fmt.Sprintf("life-%d", i))
	}
	s, err := inTurns(ctx, b.n, ours, bare, shell)
	if err != nil {
		return nil, err
	}
	return []result{
		{What: "3 sidecars (startup probe exec, period 1 s) + 1 init + 1 main: create returned → Ready seen by a watch",
			Figure: s[0].median("up"), Bare: s[1].median("up"), MaxRatio: 1.4,
			Note: "a shell loop over the same calls " + ms(s[2].median("up"))},
		{What: "… deleted → object gone and nothing left on the node", Figure: s[0].median("down"),
			Bare: s[1].median("down"), MaxRatio: 1.4, Note: "shell " + ms(s[2].median("down"))},
		{What: "last main's end, by the runtime's event → stop of the last sidecar issued", Figure: gaps.median("main"),
			Limit: 20 * time.Millisecond, Note: ms(gaps.median("main, process")) + " after the process itself ended"},
		{What: "a sidecar's end, by the runtime's event → stop of the one before it issued",
			Figure: gaps.median("sidecar"), Limit: 20 * time.Millisecond,
			Note: ms(gaps.median("sidecar, process")) + " after the process itself ended"},
	}, b.bare.nothingLeft(ctx)
}

func (b *bench) lifeOurs(ctx context.Context, name string, ends *endings,
	gaps samples) (map[string]time.Duration, error) {
	p, err := b.api.client.CoreV1().Pods(namespace).Create(ctx, lifePod(name), metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	created := time.Now()
	ready, err := b.api.awaitPod(ctx, p, func(p *corev1.Pod) bool { return isReady(p) })
	if err != nil {
		return nil, err
	}
	if err := b.settled(ctx, name); err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := b.api.delete(ctx, name); err != nil {
		return nil, err
	}
	gone, err := b.awaitClean(ctx, []types.UID{p.UID})
	if err != nil {
		return nil, err
	}
	h, err := podtime.Source{Client: b.api.client}.Get(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	for i, who := range []string{"main", "sidecar2", "sidecar1"} {
		next := fmt.Sprintf("sidecar%d", 2-i)
		end, err1 := momentOf(h, timeline.Moment{What: timeline.Exited, Container: who})
		stop, err2 := momentOf(h, timeline.Moment{What: timeline.Stop, Edge: timeline.Begin, Container: next})
		event, err3 := ends.of(string(p.UID), who)
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, err
		}
		what := strings.TrimRight(who, "0123456789")
		gaps[what] = append(gaps[what], since(event, stop))
		gaps[what+", process"] = append(gaps[what+", process"], since(end, stop))
	}
	return map[string]time.Duration{"up": ready.Sub(created), "down": gone.Sub(begun)}, nil
}

// lifeBare makes the same calls in the same order, as fast as they return.
func (b *bench) lifeBare(ctx context.Context, name string) (map[string]time.Duration, error) {
	p, err := b.bare.newPod(lifePod(name))
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := b.bare.runSandbox(ctx, p); err != nil {
		return nil, err
	}
	var ids []string
	for _, c := range p.containers {
		if err := b.bare.startContainer(ctx, p, c); err != nil {
			return nil, err
		}
		ids = append(ids, p.container)
		switch {
		case strings.HasPrefix(c.Metadata.Name, "sidecar"):
			_, err = b.bare.execTrue(ctx, p)
		case c.Metadata.Name == "init":
			err = b.bare.awaitEnd(ctx, p.container)
		}
		if err != nil {
			return nil, err
		}
	}
	up := time.Since(begun)
	if err := b.bare.settled(ctx, p.container); err != nil {
		return nil, err
	}
	begun = time.Now()
	for _, i := range []int{4, 2, 1, 0} {
		if _, err := b.bare.Runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: ids[i],
			Timeout: 30}); err != nil {
			return nil, err
		}
	}
	if _,
		err := b.bare.Runtime.StopPodSandbox(ctx,
		&runtimeapi.StopPodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
		return nil, err
	}
	_, err = b.bare.Runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.sandbox})
	return map[string]time.Duration{"up": up, "down": time.Since(begun)}, errors.Join(err, p.tidy())
}

// lifeShell has the shell make them.
func (b *bench) lifeShell(ctx context.Context, name string) (map[string]time.Duration, error) {
	p, err := b.bare.newPod(lifePod(name))
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, "shell")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	err = writeConfig(filepath.Join(dir, "sandbox"), p.config)
	for i, c := range p.containers {
		err = errors.Join(err, writeConfig(filepath.Join(dir, fmt.Sprint(i)), c))
	}
	if err != nil {
		return nil, err
	}
	ids, up, err := b.inShell(ctx, upScript, dir)
	if err != nil {
		return nil, err
	}
	if err := b.bare.settled(ctx, strings.Fields(ids)[1]); err != nil {
		return nil, err
	}
	_, down, err := b.inShell(ctx, downScript, strings.Fields(ids)...)
	return map[string]time.Duration{"up": up, "down": down}, errors.Join(err, p.tidy())
}

// settled gives a container that was just started the time to heed signals: as the first process of its namespace it is
// not told of one that comes before it listens, and would be killed after its whole grace.
func (b *bareClient) settled(ctx context.Context, id string) error {
	_, err := b.ExecSync(ctx, id, []string{"true"}, patience)
	return err
}

// settled does the same for the main of a pod of the server's.
func (b *bench) settled(ctx context.Context, name string) error {
	p, err := b.api.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return b.bare.settled(ctx, strings.TrimPrefix(p.Status.ContainerStatuses[0].ContainerID, "containerd://"))
}

// awaitEnd looks for the container's end as often as it can: what it adds to the yardstick is one look.
func (b *bareClient) awaitEnd(ctx context.Context, id string) error {
	for late := time.Now().Add(patience); ; {
		r, err := b.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
		if err != nil || r.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
			return err
		}
		if time.Now().After(late) {
			return fmt.Errorf("container %s has not ended after %v", id, patience)
		}
		if err := sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// endings are the runtime's own events of containers that ended, with the runtime's times of them.
type endings struct {
	cancel context.CancelFunc
	ended  chan struct{}

	mu    sync.Mutex
	at    map[[2]string]time.Time // the first of each container, by its pod's UID and its name
	names map[string][2]string    // by container id
}

// hearEnds listens to the runtime, beside the agent.
func (b *bench) hearEnds(ctx context.Context) (*endings, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := b.bare.Runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		cancel()
		return nil, err
	}
	e := &endings{cancel: cancel, ended: make(chan struct{}), at: map[[2]string]time.Time{},
		names: map[string][2]string{}}
	go func() {
		defer close(e.ended)
		for {
			ev, err := stream.Recv()
			if err != nil {
				return
			}
			e.mu.Lock()
			for _, c := range ev.GetContainersStatuses() {
				e.names[c.GetId()] = [2]string{ev.GetPodSandboxStatus().GetMetadata().GetUid(),
					c.GetMetadata().GetName()}
			}
			key, known := e.names[ev.GetContainerId()]
			if _,
				had := e.at[key]; known && !had &&
				ev.GetContainerEventType() == runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT {
				e.at[key] = time.Unix(0, ev.GetCreatedAt())
			}
			e.mu.Unlock()
		}
	}()
	return e, nil
}

func (e *endings) stop() {
	e.cancel()
	<-e.ended
}

func (e *endings) of(uid, container string) (time.Time, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, ok := e.at[[2]string{uid, container}]
	if !ok {
		return at, fmt.Errorf("the runtime has sent no event of the end of %s", container)
	}
	return at, nil
}

// since is how long after a what came b: at least a microsecond, for an agent that need not wait for the event.
func since(a, b time.Time) time.Duration { return max(b.Sub(a), time.Microsecond) }

// momentOf finds when a pod's timeline says that something happened.
func momentOf(h timeline.History, want timeline.Moment) (time.Time, error) {
	for _, m := range h.Moments {
		if m.What == want.What && m.Edge == want.Edge && m.Container == want.Container && m.Attempt == want.Attempt {
			return m.At, nil
		}
	}
	return time.Time{}, fmt.Errorf("the timeline of %s does not say when: %s %s of %s/%d", h.Name, want.What, want.Edge,
		want.Container, want.Attempt)
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
