// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// dialer is one that no other client has: clients whose configurations are equal share connections.
func dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: patience}
	return d.DialContext
}

// fanOut has many watch while pods are made, and returns how long after the last create the last watcher had seen them
// all. One whose watch ends before is an error.
func fanOut(ctx context.Context, dataDir string, maker kubernetes.Interface) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	open, err := openWatches(ctx, dataDir, maker)
	defer func() {
		for _, w := range open {
			w.Stop()
		}
	}()
	if err != nil {
		return 0, err
	}
	seen := make([]time.Time, len(open))
	errs := make([]error, len(open))
	var group sync.WaitGroup
	for i, w := range open {
		group.Go(func() { seen[i], errs[i] = sawAll(ctx, w) })
	}
	for i := range watched {
		if _, err := maker.CoreV1().Pods(namespace).Create(ctx, idlePod(fmt.Sprintf("seen-%d", i)),
			metav1.CreateOptions{}); err != nil {
			return 0, err
		}
	}
	made := time.Now()
	group.Wait()
	last := made
	for _, at := range seen {
		if at.After(last) {
			last = at
		}
	}
	return last.Sub(made), errors.Join(errs...)
}

func openWatches(ctx context.Context, dataDir string, maker kubernetes.Interface) (open []watch.Interface, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig(dataDir))
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	from, err := maker.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	for range watchers {
		own := rest.CopyConfig(config)
		own.Dial = dialer()
		client, err := kubernetes.NewForConfig(own)
		if err != nil {
			return open, err
		}
		w, err := client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: from.ResourceVersion})
		if err != nil {
			return open, err
		}
		open = append(open, w)
	}
	return open, nil
}

// sawAll returns when a watch has shown as many new pods as are made.
func sawAll(ctx context.Context, w watch.Interface) (time.Time, error) {
	n := 0
	for {
		select {
		case e, ok := <-w.ResultChan():
			switch _, isPod := e.Object.(*corev1.Pod); {
			case !ok || !isPod:
				return time.Time{}, fmt.Errorf("a watcher was dropped after %d of %d pods", n, watched)
			case e.Type == watch.Added:
				n++
			}
			if n == watched {
				return time.Now(), nil
			}
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("a watcher saw %d of %d pods: %w", n, watched, ctx.Err())
		}
	}
}
