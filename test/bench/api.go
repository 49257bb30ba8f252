// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	toolswatch "k8s.io/client-go/tools/watch"
)

const namespace = "default"

// apiClient is a user of the API: it creates and deletes pods and watches what becomes of them.
type apiClient struct {
	client kubernetes.Interface
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	running map[types.UID]time.Time // when the watch first showed it so
	gone    map[types.UID]time.Time
	failed  map[types.UID]string
	change  chan struct{} // closed and replaced at every change
	broken  error
}

func connect(dataDir string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig(dataDir))
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return kubernetes.NewForConfig(config)
}

func newAPIClient(ctx context.Context, dataDir string) (*apiClient, error) {
	client, err := connect(dataDir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		return nil, err
	}
	// On a machine under load a watch may break; it goes on where it was.
	w, err := toolswatch.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.CoreV1().Pods(namespace).Watch(ctx, o)
		}})
	if err != nil {
		cancel()
		return nil, err
	}
	c := &apiClient{client: client, cancel: cancel, ended: make(chan struct{}), running: map[types.UID]time.Time{},
		gone: map[types.UID]time.Time{}, failed: map[types.UID]string{}, change: make(chan struct{})}
	go c.follow(w)
	return c, nil
}

func (c *apiClient) close() {
	c.cancel()
	<-c.ended
}

// follow notes when the watch shows a pod running or gone.
func (c *apiClient) follow(w watch.Interface) {
	defer close(c.ended)
	defer w.Stop()
	for ev := range w.ResultChan() {
		now := time.Now()
		p, ok := ev.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		c.mu.Lock()
		switch {
		case ev.Type == watch.Deleted:
			c.gone[p.UID] = now
		case p.Status.Phase == corev1.PodRunning && c.running[p.UID].IsZero():
			c.running[p.UID] = now
		case p.Status.Phase == corev1.PodFailed:
			c.failed[p.UID] = p.Status.Reason + " " + p.Status.Message
		}
		c.tell()
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = errors.New("the watch of pods ended")
	c.tell()
}

func (c *apiClient) tell() {
	close(c.change)
	c.change = make(chan struct{})
}

// await waits until the watch has shown all pods so, and returns when the last of them was.
func (c *apiClient) await(ctx context.Context, what string, uids []types.UID,
	shown func() map[types.UID]time.Time) (time.Time, error) {
	late := time.After(patience)
	for {
		var last time.Time
		left := 0
		c.mu.Lock()
		err, change := c.broken, c.change
		for _, uid := range uids {
			at, ok := shown()[uid]
			if !ok {
				left++
			}
			if at.After(last) {
				last = at
			}
			if why, bad := c.failed[uid]; bad && what == "running" {
				err = fmt.Errorf("a pod failed: %s", why)
			}
		}
		c.mu.Unlock()
		if err != nil || left == 0 {
			return last, err
		}
		select {
		case <-change:
		case <-ctx.Done():
			return last, ctx.Err()
		case <-late:
			return last, fmt.Errorf("%d of %d pods are not %s after %v", left, len(uids), what, patience)
		}
	}
}

func (c *apiClient) awaitRunning(ctx context.Context, uids ...types.UID) (time.Time, error) {
	return c.await(ctx, "running", uids, func() map[types.UID]time.Time { return c.running })
}

func (c *apiClient) awaitGone(ctx context.Context, uids ...types.UID) (time.Time, error) {
	return c.await(ctx, "gone", uids, func() map[types.UID]time.Time { return c.gone })
}

// pod is what both sides run: one container that waits for SIGTERM.
func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: imageName}}},
	}
}

func (c *apiClient) create(ctx context.Context, name string) (types.UID, error) {
	p, err := c.client.CoreV1().Pods(namespace).Create(ctx, pod(name), metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return p.UID, nil
}

func (c *apiClient) delete(ctx context.Context, name string) error {
	return c.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{})
}
