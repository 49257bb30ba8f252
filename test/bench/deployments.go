// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// oneReplica: a Deployment of one pod, against a pod that is created by itself.
func (b *bench) oneReplica(ctx context.Context) ([]result, error) {
	i := 0
	s, err := inTurns(ctx, b.n, func(ctx context.Context) (map[string]time.Duration, error) {
		i++
		return b.deploy(ctx, fmt.Sprintf("deployed-%d", i), 1)
	}, func(ctx context.Context) (map[string]time.Duration, error) {
		return b.oneOurs(ctx, fmt.Sprintf("single-%d", i))
	})
	if err != nil {
		return nil, err
	}
	return []result{
		{What: "Deployment of 1: create returned → its pod `Running` seen by a watch (bare: a pod of the API by itself)",
			Figure: s[0].median("up"), Bare: s[1].median("up"), MaxOver: 60 * time.Millisecond},
		{What: "… deleted → its pod gone and nothing left on the node", Figure: s[0].median("down"),
			Bare: s[1].median("down")},
	}, b.bare.nothingLeft(ctx)
}

// manyReplicas: a Deployment of many pods, against as many that are created by themselves.
func (b *bench) manyReplicas(ctx context.Context) ([]result, error) {
	i := 0
	s, err := inTurns(ctx, b.n, func(ctx context.Context) (map[string]time.Duration, error) {
		i++
		return b.deploy(ctx, fmt.Sprintf("replicas-%d", i), b.pods)
	}, func(ctx context.Context) (map[string]time.Duration, error) {
		prefix := fmt.Sprintf("singles-%d", i)
		begun := time.Now()
		uids, err := b.createMany(ctx, prefix)
		if err != nil {
			return nil, err
		}
		running, err := b.api.awaitRunning(ctx, uids...)
		if err != nil {
			return nil, err
		}
		ending := time.Now()
		gone, err := b.deleteMany(ctx, prefix, uids)
		return map[string]time.Duration{"up": running.Sub(begun), "down": gone.Sub(ending)}, err
	})
	if err != nil {
		return nil, err
	}
	return []result{
		{What: fmt.Sprintf("Deployment of %d: create → all `Running` (bare: %[1]d pods of the API at once)", b.pods),
			Figure: s[0].median("up"), Bare: s[1].median("up"), MaxRatio: 1.1},
		{What: "… deleted → all its pods gone", Figure: s[0].median("down"), Bare: s[1].median("down")},
	}, b.bare.nothingLeft(ctx)
}

// deploy creates a Deployment, waits until all its pods run, deletes it and waits until they are gone.
func (b *bench) deploy(ctx context.Context, name string, replicas int) (map[string]time.Duration, error) {
	watching, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w, err := b.api.client.CoreV1().Pods(namespace).Watch(watching, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	begun := time.Now()
	_, err = b.api.client.AppsV1().Deployments(namespace).Create(ctx, deployment(name, int32(replicas)),
		metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	if replicas == 1 {
		begun = time.Now() // a single pod's time begins there too
	}
	pods, running, err := runningPods(w, replicas)
	if err != nil {
		return nil, fmt.Errorf("deployment %s: %w", name, err)
	}
	var uids []types.UID
	for uid, pod := range pods {
		uids = append(uids, uid)
		if replicas == 1 {
			if err := b.settled(ctx, pod); err != nil {
				return nil, err
			}
		}
	}
	ending := time.Now()
	background := metav1.DeletePropagationBackground
	err = b.api.client.AppsV1().Deployments(namespace).Delete(ctx, name,
		metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil {
		return nil, err
	}
	gone, err := b.awaitClean(ctx, uids)
	return map[string]time.Duration{"up": running.Sub(begun), "down": gone.Sub(ending)}, err
}

// deployment is one of so many pods, with its name as their label.
func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod(name).Spec}}}
}

// runningPods waits until a watch has shown so many pods running: their names, and when it showed the last one.
func runningPods(w watch.Interface, want int) (map[types.UID]string, time.Time, error) {
	running := map[types.UID]string{}
	for ev := range w.ResultChan() {
		now := time.Now()
		p, ok := ev.Object.(*corev1.Pod)
		if !ok || p.Status.Phase != corev1.PodRunning {
			continue
		}
		running[p.UID] = p.Name
		if len(running) == want {
			return running, now, nil
		}
	}
	return nil, time.Time{}, fmt.Errorf("%d of %d pods run when the watch ended", len(running), want)
}
