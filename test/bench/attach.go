// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/retry"
)

// attachBytes is what a debug container prints to a client that is attached.
const attachBytes = 100 << 20

// attachSessions: a container prints to one client, without a terminal, when the client asks for it: a debug container,
// whose output is kept, and an ordinary one, whose output is not. The server's memory is
// that at a session's highest, against that before the same session: what a hundred megabytes on their way through it
// add.
func (b *bench) attachSessions(ctx context.Context) ([]result, error) {
	uid, err := b.api.create(ctx, "attach")
	if err != nil {
		return nil, err
	}
	if _, err := b.api.awaitRunning(ctx, uid); err != nil {
		return nil, err
	}
	var grown []int64
	turn := 0
	debug := func(ctx context.Context) (map[string]time.Duration, error) {
		turn++
		name := fmt.Sprintf("printer-%d", turn)
		if err := b.addPrinter(ctx, name); err != nil {
			return nil, err
		}
		before, _, err := memory(b.server.pid())
		if err != nil {
			return nil, err
		}
		var most atomic.Int64
		took, err := b.attachOnce(ctx, "attach", name, &most)
		grown = append(grown, most.Load()-before)
		return took, err
	}
	plain := func(ctx context.Context) (map[string]time.Duration, error) {
		p := pod(fmt.Sprintf("attach-%d", turn))
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		p.Spec.Containers[0].Command, p.Spec.Containers[0].Stdin = printer(), true
		p, err := b.api.client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		if _, err := b.api.awaitRunning(ctx, p.UID); err != nil {
			return nil, err
		}
		took, err := b.attachOnce(ctx, p.Name, "main", nil)
		if err != nil {
			return nil, err
		}
		if err := b.api.delete(ctx, p.Name); err != nil {
			return nil, err
		}
		_, err = b.awaitClean(ctx, []types.UID{p.UID})
		return took, err
	}
	s, err := inTurns(ctx, b.n, debug, plain)
	if err != nil {
		return nil, err
	}
	if err := b.api.delete(ctx, "attach"); err != nil {
		return nil, err
	}
	if _, err := b.awaitClean(ctx, []types.UID{uid}); err != nil {
		return nil, err
	}
	slices.Sort(grown)
	speed := func(d time.Duration) string { return fmt.Sprintf("%.0f MB/s", attachBytes/1e6/d.Seconds()) }
	return []result{
		{What: "attach: 100 MiB of a debug container to one client, first byte to last", Figure: s[0].median("took"),
			Limit: attachBytes * time.Second / 200e6, Note: speed(s[0].median("took"))},
		{What: "… CPU of the server process", Figure: s[0].median("cpu")},
		{What: "… server process RSS over that before, median (and most)", Bytes: max(grown[len(grown)/2], 1),
			MaxBytes: 64 << 20, Note: mib(grown[len(grown)-1])},
		{What: "… of an ordinary container", Figure: s[1].median("took"),
			Note: speed(s[1].median("took"))},
		{What: "… CPU of the server process", Figure: s[1].median("cpu")},
	}, nil
}

func printer() []string { return []string{"/bin/print", fmt.Sprint(attachBytes)} }

// addPrinter adds a debug container that prints when it is told to, and waits until it runs.
func (b *bench) addPrinter(ctx context.Context, name string) error {
	pods := b.api.client.CoreV1().Pods(namespace)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // its status changes meanwhile
		p, err := pods.Get(ctx, "attach", metav1.GetOptions{})
		if err != nil {
			return err
		}
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: imageName, Command: printer(),
				Stdin: true}})
		_, err = pods.UpdateEphemeralContainers(ctx, "attach", p, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return b.awaitDebug(ctx, name)
}

// attachOnce runs one session.
func (b *bench) attachOnce(ctx context.Context, pod, container string,
	most *atomic.Int64) (map[string]time.Duration, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig(b.server.dataDir))
	if err != nil {
		return nil, err
	}
	url := b.api.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("attach").
		VersionedParams(&corev1.PodAttachOptions{Container: container, Stdin: true, Stdout: true},
			scheme.ParameterCodec).URL()
	e, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, url.String())
	if err != nil {
		return nil, err
	}
	in, start := io.Pipe()
	defer start.Close()
	go func() { _, _ = io.WriteString(start, "go\n") }()
	out := &meter{bench: b, most: most}
	before, err := cpuTime(b.server.pid())
	if err != nil {
		return nil, err
	}
	if err := e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out}); err != nil {
		return nil, err
	}
	after, err := cpuTime(b.server.pid())
	if err == nil && out.n != attachBytes {
		err = fmt.Errorf("attach to %s/%s: %d bytes came, not %d", pod, container, out.n, attachBytes)
	}
	return map[string]time.Duration{"took": out.last.Sub(out.first), "cpu": after - before}, errors.Join(err, out.err)
}

// awaitDebug waits until a debug container runs.
func (b *bench) awaitDebug(ctx context.Context, name string) error {
	w, err := b.api.client.CoreV1().Pods(namespace).Watch(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=attach"})
	if err != nil {
		return err
	}
	defer w.Stop()
	late := time.After(patience)
	for {
		select {
		case ev, ok := <-w.ResultChan():
			if !ok {
				return fmt.Errorf("debug container %s: the watch has ended", name)
			}
			p, _ := ev.Object.(*corev1.Pod)
			if p == nil {
				continue
			}
			for i := range p.Status.EphemeralContainerStatuses {
				if s := &p.Status.EphemeralContainerStatuses[i]; s.Name == name && s.State.Running != nil {
					return nil
				}
			}
		case <-late:
			return fmt.Errorf("debug container %s does not run after %v", name, patience)
		}
	}
}

// meter counts what comes and looks at the server's memory every few megabytes.
type meter struct {
	bench       *bench
	n           int64
	looked      int64
	first, last time.Time
	most        *atomic.Int64 // nil: no matter
	err         error
}

func (m *meter) Write(p []byte) (int, error) {
	m.last = time.Now()
	if m.n == 0 {
		m.first = m.last
	}
	m.n += int64(len(p))
	if m.most != nil && m.n-m.looked > 10<<20 {
		m.looked = m.n
		rss, err := field(fmt.Sprintf("/proc/%d/status", m.bench.server.pid()), "VmRSS:")
		m.err = errors.Join(m.err, err)
		m.most.Store(max(m.most.Load(), rss<<10))
	}
	return len(p), nil
}
