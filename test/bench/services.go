// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	served      = "served" // the name of a pod that answers, and the value of its label
	servedPort  = 8080     // where it does
	connections = 2000     // that are made to measure one
	questions   = 5000     // that are asked to measure one
	oneMore     = 1000     // services beside the one that is measured
	ofServed    = "app"    // the label
	asker       = "asker"  // the name of a pod that asks
)

// services: how soon a service leads somewhere, what a connection through it costs, and what its name does.
func (b *bench) services(ctx context.Context) (results []result, err error) {
	at, uids, err := b.serving(ctx)
	if err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context, string) ([]result, error){b.firstConnection, b.newEndpoint, b.throughService, b.askedNames} {
		got, err := part(ctx, at)
		if err != nil {
			return nil, err
		}
		results = append(results, got...)
	}
	for _, name := range []string{served, asker} {
		if err := b.api.delete(ctx, name); err != nil {
			return nil, err
		}
	}
	_, err = b.awaitClean(ctx, uids)
	return results, errors.Join(err, b.bare.nothingLeft(ctx))
}

// serving starts the pod that answers and the one that asks, and returns the address of the former.
func (b *bench) serving(ctx context.Context) (at string, uids []types.UID, err error) {
	answers := pod(served)
	answers.Labels = map[string]string{ofServed: served}
	answers.Spec.Containers[0].Command = []string{"/bin/serve", fmt.Sprintf(":%d", servedPort)}
	for _, p := range []*corev1.Pod{answers, pod(asker)} {
		made, err := b.api.client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
		if err != nil {
			return "", nil, err
		}
		uids = append(uids, made.UID)
	}
	if _, err := b.api.awaitRunning(ctx, uids...); err != nil {
		return "", nil, err
	}
	p, err := b.api.client.CoreV1().Pods(namespace).Get(ctx, served, metav1.GetOptions{})
	if err != nil {
		return "", nil, err
	}
	at = net.JoinHostPort(p.Status.PodIP, fmt.Sprint(servedPort))
	_, err = answered(ctx, at, true)
	return p.Status.PodIP, uids, err
}

// answered returns when a connection to an address is answered, or, if it should not be, when it is not.
func answered(ctx context.Context, address string, should bool) (time.Time, error) {
	for late := time.Now().Add(patience); time.Now().Before(late) && ctx.Err() == nil; {
		c, err := net.DialTimeout("tcp", address, 50*time.Millisecond)
		if err == nil {
			_, err = c.Read(make([]byte, 1))
			c.Close()
		}
		if (err == nil) == should {
			return time.Now(), nil
		}
		time.Sleep(500 * time.Microsecond)
	}
	return time.Time{}, fmt.Errorf("%s: answered is still not %v after %v (%v)", address, should, patience, ctx.Err())
}

func (b *bench) makeService(ctx context.Context, name string, selector map[string]string) (address string, err error) {
	s, err := b.api.client.CoreV1().Services(namespace).Create(ctx,
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{Port: 80,
				TargetPort: intstr.FromInt32(servedPort)}}}},
		metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(s.Spec.ClusterIP, "80"), nil
}

func (b *bench) dropService(ctx context.Context, name string) error {
	return b.api.client.CoreV1().Services(namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

// lead makes a service without a selector lead to an address, or nowhere.
func (b *bench) lead(ctx context.Context, name, to string) error {
	port := int32(servedPort)
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new(string), Port: &port}}}
	if to != "" {
		slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{to}}}
	}
	slices := b.api.client.DiscoveryV1().EndpointSlices(namespace)
	_, err := slices.Update(ctx, slice, metav1.UpdateOptions{})
	if err != nil {
		_, err = slices.Create(ctx, slice, metav1.CreateOptions{})
	}
	return err
}

// firstConnection: from a service's creation to the first connection through its address; its pod is there.
func (b *bench) firstConnection(ctx context.Context, _ string) ([]result, error) {
	took := samples{}
	for i := range b.n + 1 {
		name := fmt.Sprintf("first-%d", i)
		address, err := b.makeService(ctx, name, map[string]string{ofServed: served})
		if err != nil {
			return nil, err
		}
		begun := time.Now()
		seen, err := answered(ctx, address, true)
		if err != nil {
			return nil, err
		}
		if err := b.dropService(ctx, name); err != nil {
			return nil, err
		}
		if i > 0 { // with the first one, controllers start
			took["first"] = append(took["first"], seen.Sub(begun))
		}
	}
	return []result{{What: "Service created → first connection through its address", Figure: took.median("first"),
		Limit: 100 * time.Millisecond}}, nil
}

// newEndpoint: from when an endpoint is stored to the first connection that comes to it.
func (b *bench) newEndpoint(ctx context.Context, pod string) ([]result, error) {
	const name = "ends"
	address, err := b.makeService(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	took := samples{}
	for range b.n {
		if err := b.lead(ctx, name, pod); err != nil {
			return nil, err
		}
		begun := time.Now()
		seen, err := answered(ctx, address, true)
		if err != nil {
			return nil, err
		}
		took["in"] = append(took["in"], seen.Sub(begun))
		if err := b.lead(ctx, name, ""); err != nil {
			return nil, err
		}
		if _, err := answered(ctx, address, false); err != nil {
			return nil, err
		}
	}
	return []result{{What: "endpoint stored → in the rules, by the first connection that comes to it",
			Figure: took.median("in"), Limit: 30 * time.Millisecond}},
		b.dropService(ctx, name)
}

// throughService: a connection through a service against one to the pod's own address, from another pod; with one
// service and with a thousand more.
func (b *bench) throughService(ctx context.Context, pod string) (results []result, err error) {
	const name = "through"
	address, err := b.makeService(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	if err := b.lead(ctx, name, pod); err != nil {
		return nil, err
	}
	if _, err := answered(ctx, address, true); err != nil {
		return nil, err
	}
	own := net.JoinHostPort(pod, fmt.Sprint(servedPort))
	for _, more := range []int{0, oneMore} {
		err := each(more, 16, func(i int) error {
			name := fmt.Sprintf("more-%d", i)
			_, err := b.makeService(ctx, name, nil)
			return errors.Join(err, b.lead(ctx, name, pod))
		})
		if err != nil {
			return nil, err
		}
		side := func(to string) func(context.Context) (map[string]time.Duration, error) {
			return func(ctx context.Context) (map[string]time.Duration, error) {
				return b.inAsker(ctx, "connect", to, connections, 1)
			}
		}
		s, err := inTurns(ctx, b.n, side(address), side(own))
		if err != nil {
			return nil, err
		}
		results = append(results,
			result{What: fmt.Sprintf("a connection from pod to pod through a Service, beside %d others (bare: to the pod's address)", more),
				Figure: s[0].median("all"), Bare: s[1].median("all"), MaxRatio: 1.03,
				Note: fmt.Sprintf("%.0f a second", 1/s[0].median("all").Seconds())})
	}
	err = each(oneMore, 16, func(i int) error { return b.dropService(ctx, fmt.Sprintf("more-%d", i)) })
	return results, errors.Join(err, b.dropService(ctx, name))
}

// askedNames: the name of a service, asked for in a pod.
func (b *bench) askedNames(ctx context.Context, _ string) ([]result, error) {
	const name = "named"
	if _, err := b.makeService(ctx, name, map[string]string{ofServed: served}); err != nil {
		return nil, err
	}
	took := samples{}
	for range b.n {
		for wide, what := range map[int]string{1: "one", 8: "many"} {
			got, err := b.inAsker(ctx, "ask", name+"."+namespace+".svc.cluster.local", questions, wide)
			if err != nil {
				return nil, err
			}
			took[what] = append(took[what], got["median"])
			took["all "+what] = append(took["all "+what], got["all"])
		}
	}
	perQuestion := took.median("all many")
	return []result{
		{What: "name of a Service, asked for in a pod (median of one after the other)", Figure: took.median("one"),
			Limit: time.Millisecond},
		{What: "… 8 at a time, time for each", Figure: perQuestion, Limit: 100 * time.Microsecond,
			Note: fmt.Sprintf("%.0f a second", 1/perQuestion.Seconds())},
	}, b.dropService(ctx, name)
}

// inAsker has the pod that asks do something many times: how long each took on average, and the median.
func (b *bench) inAsker(ctx context.Context, what, to string, count, wide int) (map[string]time.Duration, error) {
	p, err := b.api.client.CoreV1().Pods(namespace).Get(ctx, asker, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	id := strings.TrimPrefix(p.Status.ContainerStatuses[0].ContainerID, "containerd://")
	r, err := b.bare.ExecSync(ctx, id, []string{"/bin/" + what, to, fmt.Sprint(count), fmt.Sprint(wide)}, patience)
	if err != nil {
		return nil, err
	}
	var all, median, done int64
	if _, err := fmt.Sscan(string(r.Stdout), &all, &median, &done); r.ExitCode != 0 || err != nil {
		return nil, fmt.Errorf("%s %s: exit code %d: %s%s", what, to, r.ExitCode, r.Stdout, r.Stderr)
	}
	return map[string]time.Duration{"all": time.Duration(all / done), "median": time.Duration(median)}, nil
}

// startToName: from the start of the process, on a folder that is not there, to an app behind a Service that answers a
// pod by its name: with the import of its image, a Deployment, a Service and the pod that asks.
func (b *bench) startToName(ctx context.Context) ([]result, error) {
	took := samples{}
	for i := range max(b.n/2, 1) {
		d, err := b.named(ctx, filepath.Join(b.dir, fmt.Sprintf("name%d", i)))
		if err != nil {
			return nil, err
		}
		took["name"] = append(took["name"], d)
	}
	return []result{{What: "server start, empty data folder → an app behind a Service answers a pod by name",
		Figure: took.median("name"), Limit: 3 * time.Second}}, nil
}

func (b *bench) named(ctx context.Context, dir string) (took time.Duration, err error) {
	v, err := startServer(ctx, b.settings, dir)
	if err != nil {
		return 0, err
	}
	own := &bench{settings: b.settings, image: b.image, server: v}
	defer func() { err = errors.Join(err, own.disconnect(), v.purge()) }()
	begun := v.begun
	err = v.poll(ctx, "kubeconfig", time.Millisecond,
		func() bool { _, err := os.Stat(kubeconfig(v.dataDir)); return err == nil })
	if err == nil {
		err = v.ready(ctx)
	}
	if err != nil {
		return 0, err
	}
	out, err := exec.CommandContext(ctx, b.wherry, "image", "import", "--data-dir", v.dataDir, b.image).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("wherry image import: %w: %s", err, out)
	}
	if err := own.connect(ctx); err != nil {
		return 0, err
	}
	if err := own.app(ctx); err != nil {
		return 0, err
	}
	asks := pod(asker)
	asks.Spec.RestartPolicy = corev1.RestartPolicyNever
	asks.Spec.Containers[0].Command = []string{"/bin/until", served + ":80"}
	asks, err = own.api.client.CoreV1().Pods(namespace).Create(ctx, asks, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	end, err := own.api.awaitPod(ctx, asks, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	return end.Sub(begun), err
}

// app makes a Deployment and its Service.
func (b *bench) app(ctx context.Context) error {
	if _, err := b.makeService(ctx, served, map[string]string{ofServed: served}); err != nil {
		return err
	}
	d := deployment(served, 1)
	d.Spec.Template.Spec.Containers[0].Command = []string{"/bin/serve", fmt.Sprintf(":%d", servedPort)}
	_, err := b.api.client.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{})
	return err
}
