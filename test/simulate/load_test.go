// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/cri/critest"
	"github.com/wherryproject/wherry/internal/cri/critest/script"
)

const space = "default"

// load is what clients do, and what they were told.
type load struct {
	w   *world
	rng *rand.Rand

	mu     sync.Mutex
	asked  map[string]int64 // by name of a ConfigMap: the last number that was sent
	told   map[string]int64 // the last that was acknowledged
	pods   map[string]bool  // by name: created for certain, and true once the deletion was acknowledged
	unsure map[string]bool  // pods whose creation or deletion had no certain answer
}

func newLoad(w *world, seed uint64) *load {
	return &load{w: w, rng: rand.New(rand.NewPCG(seed, 3)), asked: map[string]int64{}, told: map[string]int64{}, pods: map[string]bool{}, unsure: map[string]bool{}}
}

// count writes ever higher numbers into one ConfigMap, and holds what it reads against what it was told (RS-07).
func (l *load) count(ctx context.Context, name string, rng *rand.Rand) {
	for ctx.Err() == nil {
		l.countOnce(ctx, name)
		pause(ctx, time.Duration(rng.IntN(4000))*time.Millisecond)
	}
}

func (l *load) countOnce(ctx context.Context, name string) {
	client, err := l.w.client(ctx)
	if err != nil {
		return
	}
	maps := client.CoreV1().ConfigMaps(space)
	m, err := maps.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if l.lastTold(name) > 0 {
			l.w.judge.fault("ConfigMap %s is lost: %d was acknowledged", name, l.lastTold(name))
		}
		m = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"n": "1"}}
		l.sent(name, 1)
		if _, err = maps.Create(ctx, m, metav1.CreateOptions{}); err == nil {
			l.acknowledged(name, 1)
		}
		return
	case err != nil:
		return
	}
	n, _ := strconv.ParseInt(m.Data["n"], 10, 64)
	l.mu.Lock()
	told, asked := l.told[name], l.asked[name]
	l.mu.Unlock()
	if n < told || n > asked {
		l.w.judge.fault("ConfigMap %s holds %d: %d was acknowledged and %d the last that was sent", name, n, told, asked)
	}
	m.Data["n"] = strconv.FormatInt(asked+1, 10)
	l.sent(name, asked+1)
	if _, err = maps.Update(ctx, m, metav1.UpdateOptions{}); err == nil {
		l.acknowledged(name, asked+1)
	}
}

func (l *load) lastTold(name string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.told[name]
}

func (l *load) sent(name string, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[name] = n
}

func (l *load) acknowledged(name string, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told[name] = n
}

// live makes one pod, leaves it alone, and most often deletes it.
func (l *load) live(ctx context.Context, pod *corev1.Pod, rng *rand.Rand) {
	if !l.create(ctx, pod) {
		return
	}
	pause(ctx, time.Duration(rng.IntN(120_000))*time.Millisecond)
	if rng.IntN(4) == 0 || ctx.Err() != nil {
		return
	}
	l.remove(ctx, pod.Name, []*int64{nil, new(int64(0)), new(int64(3))}[rng.IntN(3)])
}

// create asks until the pod is there for certain.
func (l *load) create(ctx context.Context, pod *corev1.Pod) bool {
	for ctx.Err() == nil {
		client, err := l.w.client(ctx)
		if err != nil {
			return false
		}
		made, err := client.CoreV1().Pods(space).Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // an earlier try that had no answer
			made, err = client.CoreV1().Pods(space).Get(ctx, pod.Name, metav1.GetOptions{})
		}
		if err == nil {
			l.note(pod.Name, false)
			if made.Spec.RestartPolicy == corev1.RestartPolicyNever {
				for _, c := range made.Spec.Containers {
					l.w.judge.once(string(made.UID), c.Name)
				}
			}
			return true
		}
		pause(ctx, time.Second)
	}
	return false
}

// remove asks until the deletion has begun for certain.
func (l *load) remove(ctx context.Context, name string, grace *int64) {
	for ctx.Err() == nil {
		client, err := l.w.client(ctx)
		if err != nil {
			return
		}
		l.note(name, true)
		err = client.CoreV1().Pods(space).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: grace})
		if err == nil || apierrors.IsNotFound(err) {
			return
		}
		pause(ctx, time.Second)
	}
}

func (l *load) note(name string, deleting bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pods[name] = l.pods[name] || deleting
}

// present holds the pods there are against what was acknowledged.
func (l *load) present(ctx context.Context, client kubernetes.Interface) []corev1.Pod {
	list, err := client.CoreV1().Pods(space).List(ctx, metav1.ListOptions{})
	if err != nil {
		l.w.judge.fault("the calm world does not list its pods: %v", err)
		return nil
	}
	have := map[string]bool{}
	for i := range list.Items {
		have[list.Items[i].Name] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, deleted := range l.pods {
		if !deleted && !have[name] {
			l.w.judge.fault("pod %s is lost: its creation was acknowledged, and nobody deleted it", name)
		}
	}
	return list.Items
}

// pod is a random one.
func (l *load) pod(n int) *corev1.Pod {
	policies := []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	always := corev1.ContainerRestartPolicyAlways
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", n)}}
	p.Spec.RestartPolicy = policies[l.rng.IntN(3)]
	p.Spec.TerminationGracePeriodSeconds = new([]int64{1, 5, 30}[l.rng.IntN(3)])
	p.Spec.AutomountServiceAccountToken = new(false) // a mount in memory, which a simulation has no need of
	for i := range l.rng.IntN(3) {
		c := corev1.Container{Name: fmt.Sprintf("i%d", i), Image: "image"}
		if l.rng.IntN(3) == 0 {
			c.Name, c.RestartPolicy = fmt.Sprintf("s%d", i), &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	for i := range 1 + l.rng.IntN(2) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprintf("m%d", i), Image: "image"})
	}
	return p
}

// act says what an attempt of a container does, alike in every run of a seed.
func act(seed uint64) func(critest.Info) (script.Script, bool) {
	return func(i critest.Info) (script.Script, bool) {
		h := fnv.New64a()
		fmt.Fprint(h, i.Pod, "/", i.Container, "/", i.Attempt)
		rng := rand.New(rand.NewPCG(seed, h.Sum64()))
		s := script.Script{StopCode: script.DefaultStopCode, StopDelay: time.Duration(rng.IntN(3000)) * time.Millisecond, IgnoreStop: rng.IntN(10) == 0}
		switch {
		case i.Container[0] == 'i':
			s.Ends, s.RunFor = true, time.Duration(rng.IntN(5000))*time.Millisecond
		case rng.IntN(2) == 0:
			s.Ends, s.RunFor = true, time.Duration(rng.IntN(60_000))*time.Millisecond
		}
		if s.Ends && rng.IntN(4) == 0 && i.Attempt < 3 {
			s.ExitCode = int32(1 + rng.IntN(3))
		}
		return s, true
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
