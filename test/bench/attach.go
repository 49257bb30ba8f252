// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
)

// attachBytes is what a debug container prints to a client that is attached.
const attachBytes = 100 << 20

// attachSessions: a debug container prints to one client, without a terminal, which waits for the first byte. The server's memory
// is that at its highest, against that before the session.
func (b *bench) attachSessions(ctx context.Context) ([]result, error) {
	uid, err := b.api.create(ctx, "attach")
	if err != nil {
		return nil, err
	}
	if _, err := b.api.awaitRunning(ctx, uid); err != nil {
		return nil, err
	}
	before, _, err := memory(b.server.pid())
	if err != nil {
		return nil, err
	}
	s := samples{}
	var most atomic.Int64
	for turn := range b.n + 1 {
		took, cpu, err := b.attachOnce(ctx, fmt.Sprintf("printer-%d", turn), &most)
		if err != nil {
			return nil, err
		}
		if turn > 0 {
			s["took"], s["cpu"] = append(s["took"], took), append(s["cpu"], cpu)
		}
	}
	if err := b.api.delete(ctx, "attach"); err != nil {
		return nil, err
	}
	if _, err := b.awaitClean(ctx, []types.UID{uid}); err != nil {
		return nil, err
	}
	took := s.median("took")
	return []result{
		{What: "attach: 100 MiB of a debug container to one client, first byte to last", Figure: took, Limit: attachBytes * time.Second / 200e6,
			Note: fmt.Sprintf("%.0f MB/s", attachBytes/1e6/took.Seconds())},
		{What: "… CPU of the server process", Figure: s.median("cpu")},
		{What: "… server process RSS over that before", Bytes: max(most.Load()-before, 1), MaxBytes: 64 << 20},
	}, nil
}

// attachOnce runs one session. The container prints when the client asks for it.
func (b *bench) attachOnce(ctx context.Context, name string, most *atomic.Int64) (took, cpu time.Duration, err error) {
	pods := b.api.client.CoreV1().Pods(namespace)
	p, err := pods.Get(ctx, "attach", metav1.GetOptions{})
	if err != nil {
		return 0, 0, err
	}
	p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: name, Image: imageName, Command: []string{"/bin/print", fmt.Sprint(attachBytes)}, Stdin: true,
	}})
	if _, err := pods.UpdateEphemeralContainers(ctx, "attach", p, metav1.UpdateOptions{}); err != nil {
		return 0, 0, err
	}
	if err := b.awaitDebug(ctx, name); err != nil {
		return 0, 0, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig(b.server.dataDir))
	if err != nil {
		return 0, 0, err
	}
	url := b.api.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name("attach").SubResource("attach").
		VersionedParams(&corev1.PodAttachOptions{Container: name, Stdin: true, Stdout: true}, scheme.ParameterCodec).URL()
	e, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, url.String())
	if err != nil {
		return 0, 0, err
	}
	in, start := io.Pipe()
	defer start.Close()
	go func() { _, _ = io.WriteString(start, "go\n") }()
	out := &meter{bench: b, most: most}
	cpuBefore, err := cpuTime(b.server.pid())
	if err != nil {
		return 0, 0, err
	}
	if err := e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out}); err != nil {
		return 0, 0, err
	}
	cpuAfter, err := cpuTime(b.server.pid())
	if err == nil && out.n != attachBytes {
		err = fmt.Errorf("attach: %d bytes came, not %d", out.n, attachBytes)
	}
	return out.last.Sub(out.first), cpuAfter - cpuBefore, errors.Join(err, out.err)
}

// awaitDebug waits until a debug container runs.
func (b *bench) awaitDebug(ctx context.Context, name string) error {
	w, err := b.api.client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=attach"})
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
	most        *atomic.Int64
	err         error
}

func (m *meter) Write(p []byte) (int, error) {
	m.last = time.Now()
	if m.n == 0 {
		m.first = m.last
	}
	m.n += int64(len(p))
	if m.n-m.looked > 10<<20 {
		m.looked = m.n
		rss, err := field(fmt.Sprintf("/proc/%d/status", m.bench.server.pid()), "VmRSS:")
		m.err = errors.Join(m.err, err)
		m.most.Store(max(m.most.Load(), rss<<10))
	}
	return len(p), nil
}
