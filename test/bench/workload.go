// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// smallWorkload: what a Deployment of 3 and its Service add to the memory of a server that has had neither, with the
// controllers that they start. The server is one of its own, so that those of other rows stay without.
func (b *bench) smallWorkload(ctx context.Context) (results []result, err error) {
	own := &bench{settings: b.settings, image: b.image}
	own.dir = filepath.Join(b.dir, "workload")
	if err := os.MkdirAll(own.dir, 0o755); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, own.close()) }()
	if err := own.open(ctx); err != nil {
		return nil, err
	}
	if err := sleep(ctx, b.settle); err != nil {
		return nil, err
	}
	before, _, err := memory(own.server.pid())
	if err != nil {
		return nil, err
	}
	if err := own.workload(ctx); err != nil {
		return nil, err
	}
	if err := sleep(ctx, b.settle); err != nil {
		return nil, err
	}
	after, _, err := memory(own.server.pid())
	if err != nil {
		return nil, err
	}
	return []result{{What: "server process RSS that a Deployment of 3 and a Service add", Bytes: max(after-before, 1),
		MaxBytes: 45 << 20, Note: fmt.Sprintf("%s before, %s after", mib(before), mib(after))}}, nil
}

// workload makes a Deployment of 3 and a Service before it, and waits until the pods run.
func (b *bench) workload(ctx context.Context) error {
	const name = "small"
	watching, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w, err := b.api.client.CoreV1().Pods(namespace).Watch(watching, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return err
	}
	defer w.Stop()
	labels := map[string]string{"app": name}
	_, err = b.api.client.CoreV1().Services(namespace).Create(ctx,
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}},
		metav1.CreateOptions{})
	if err != nil {
		return err
	}
	const count = 3
	_, err = b.api.client.AppsV1().Deployments(namespace).Create(ctx, deployment(name, count), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, _, err = runningPods(w, count)
	return err
}
