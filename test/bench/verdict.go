// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/wherryproject/wherry/internal/podtime"
	"github.com/wherryproject/wherry/internal/timeline"
)

// awaitPod watches a pod from the version given on until it is as wanted, and returns when the watch showed it so.
func (c *apiClient) awaitPod(ctx context.Context, p *corev1.Pod, ok func(*corev1.Pod) bool) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w, err := c.client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + p.Name,
		ResourceVersion: p.ResourceVersion})
	if err != nil {
		return time.Time{}, err
	}
	defer w.Stop()
	for ev := range w.ResultChan() {
		now := time.Now()
		if q, is := ev.Object.(*corev1.Pod); is && ev.Type != watch.Deleted && ok(q) {
			q.DeepCopyInto(p)
			return now, nil
		}
	}
	return time.Time{}, fmt.Errorf("pod %s did not become what was waited for in %v", p.Name, patience)
}

// restarts: a container ends by itself, and its next attempt is begun.
func (b *bench) restarts(ctx context.Context) ([]result, error) {
	ends, err := b.hearEnds(ctx)
	if err != nil {
		return nil, err
	}
	defer ends.stop()
	took := samples{}
	for i := range b.n + 1 {
		if err := b.restartOnce(ctx, fmt.Sprintf("restart-%d", i), ends, took); err != nil {
			return nil, err
		}
		if i == 0 {
			clear(took)
		}
	}
	return []result{{What: "container's end, by the runtime's event → its restart issued (no back-off due)",
		Figure: took.median("event"), Limit: 20 * time.Millisecond,
		Note: ms(took.median("process")) + " after the process itself ended"}}, b.bare.nothingLeft(ctx)
}

func (b *bench) restartOnce(ctx context.Context, name string, ends *endings, took samples) error {
	uid, err := b.api.create(ctx, name)
	if err != nil {
		return err
	}
	if _, err := b.api.awaitRunning(ctx, uid); err != nil {
		return err
	}
	p, err := b.api.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := b.endOf(ctx, p); err != nil {
		return err
	}
	_, err = b.api.awaitPod(ctx, p, func(p *corev1.Pod) bool {
		s := p.Status.ContainerStatuses
		return len(s) == 1 && s[0].RestartCount == 1 && s[0].State.Running != nil
	})
	if err != nil {
		return err
	}
	h, err := podtime.Source{Client: b.api.client}.Of(ctx, p)
	if err != nil {
		return err
	}
	end, err1 := momentOf(h, timeline.Moment{What: timeline.Exited, Container: "main"})
	start, err2 := momentOf(h, timeline.Moment{What: timeline.Start, Edge: timeline.Begin, Container: "main",
		Attempt: 1})
	event, err3 := ends.of(string(uid), "main")
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	took["event"] = append(took["event"], since(event, start))
	took["process"] = append(took["process"], since(end, start))
	if err := b.api.delete(ctx, name); err != nil {
		return err
	}
	_, err = b.awaitClean(ctx, []types.UID{uid})
	return err
}

// endOf has the pod's main end itself. Whether the command that did it lived to tell is no matter.
func (b *bench) endOf(ctx context.Context, p *corev1.Pod) error {
	id := p.Status.ContainerStatuses[0].ContainerID
	_, err := b.bare.ExecSync(ctx, id[len("containerd://"):], []string{"end"}, patience)
	if err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

// readiness: a file that a readiness probe looks for comes and goes; from the probe's other answer to the watch's other
// condition.
func (b *bench) readiness(ctx context.Context) ([]result, error) {
	dir := filepath.Join(b.dir, "ready")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	p := pod("ready")
	p.Spec.Volumes = []corev1.Volume{{Name: "v",
		VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}}}}
	c := &p.Spec.Containers[0]
	c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
	c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"there", "/v/file"}}}}
	p, err := b.api.client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	if _, err := b.api.awaitRunning(ctx, p.UID); err != nil {
		return nil, err
	}
	took := samples{}
	file := filepath.Join(dir, "file")
	for i := range 2*b.n + 2 {
		want := i%2 == 0
		if err := os.Remove(file); !want && err != nil {
			return nil, err
		}
		if want {
			if err := os.WriteFile(file, nil, 0o644); err != nil {
				return nil, err
			}
		}
		seen, err := b.api.awaitPod(ctx, p, func(p *corev1.Pod) bool { return isReady(p) == want })
		if err != nil {
			return nil, err
		}
		h, err := podtime.Source{Client: b.api.client}.Of(ctx, p)
		if err != nil {
			return nil, err
		}
		verdict := time.Time{}
		for _, m := range h.Moments {
			if m.What == timeline.Probed && m.Failed != want && !m.At.After(seen) {
				verdict = m.At // the last of them: a run of equal answers has the time of its first
			}
		}
		if verdict.IsZero() {
			return nil, fmt.Errorf("the timeline of %s does not say what its probe said", p.Name)
		}
		if i >= 2 {
			took["seen"] = append(took["seen"], seen.Sub(verdict))
		}
	}
	if err := b.api.delete(ctx, p.Name); err != nil {
		return nil, err
	}
	if _, err := b.awaitClean(ctx, []types.UID{p.UID}); err != nil {
		return nil, err
	}
	return []result{{What: "readiness probe's verdict → the pod's other Ready condition seen by a watch",
		Figure: took.median("seen"), Limit: 50 * time.Millisecond}}, b.bare.nothingLeft(ctx)
}
