// SPDX-License-Identifier: Apache-2.0

package failpoints

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/test/e2e"
	"github.com/wherryproject/wherry/test/hangfs"
)

// furnish makes what the pod has besides itself: a claim of a volume, a service, a network policy.
func (l *life) furnish(ctx context.Context) error {
	meta, selector := metav1.ObjectMeta{Name: l.name}, map[string]string{"app": l.name}
	core := l.srv.Client.CoreV1()
	_, cerr := core.PersistentVolumeClaims(namespace).Create(ctx,
		&corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
		}}, metav1.CreateOptions{})
	_, serr := core.Services(namespace).Create(ctx, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Selector: selector, Ports: []corev1.ServicePort{{Port: 7000}},
	}}, metav1.CreateOptions{})
	_, perr := l.srv.Client.NetworkingV1().NetworkPolicies(namespace).Create(ctx,
		&networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: selector},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{}},
		}}, metav1.CreateOptions{})
	for _, err := range []error{cerr, serr, perr} {
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// forget deletes it again.
func (l *life) forget(ctx context.Context) error {
	core := l.srv.Client.CoreV1()
	for _, err := range []error{
		core.Services(namespace).Delete(ctx, l.name, metav1.DeleteOptions{}),
		l.srv.Client.NetworkingV1().NetworkPolicies(namespace).Delete(ctx, l.name, metav1.DeleteOptions{}),
		core.PersistentVolumeClaims(namespace).Delete(ctx, l.name, metav1.DeleteOptions{}),
	} {
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// volumeGone waits until nothing is left of the claim, its volume and the volume's folder. Nobody tells when a folder
// goes.
func (l *life) volumeGone(ctx context.Context) error {
	for {
		var left []string
		volumes, err := l.srv.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		if err == nil {
			for _, v := range volumes.Items {
				if v.Spec.ClaimRef != nil && v.Spec.ClaimRef.Name == l.name {
					left = append(left, v.Name)
				}
			}
			folders, gerr := filepath.Glob(filepath.Join(l.srv.DataDir, "volumes", "*"))
			left, err = append(left, others(folders, volumes.Items)...), gerr
		}
		if err == nil && len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				err = errors.Join(err, finding(fmt.Sprintf("left of volumes: %v", left)))
			}
			return errors.Join(ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// others are the folders that are no volume's.
func others(folders []string, volumes []corev1.PersistentVolume) (out []string) {
	known := map[string]bool{}
	for _, v := range volumes {
		if v.Spec.Local != nil {
			known[v.Spec.Local.Path] = true
		}
	}
	for _, f := range folders {
		if !known[f] {
			out = append(out, f)
		}
	}
	return out
}

// served connects to the pod by its service.
func (l *life) served(ctx context.Context) error {
	s, err := l.srv.Client.CoreV1().Services(namespace).Get(ctx, l.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for { // a failure has the rules written again after a while
		conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp",
			net.JoinHostPort(s.Spec.ClusterIP, "7000"))
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// loseShim kills the pod's shim, once in a life, and waits until the pod runs again.
func (l *life) loseShim(ctx context.Context) error {
	running := func(p *corev1.Pod) string { return e2e.Status(p, "main").ContainerID }
	if l.lost == "" {
		if err := l.ready(ctx); err != nil {
			return err
		}
		shims, err := l.shims(ctx)
		if err != nil {
			return err
		}
		if len(shims) == 0 {
			return errors.New("the pod has no shim")
		}
		l.lost = running(l.pod)
		for _, pid := range shims {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return l.until(ctx, func(p *corev1.Pod) bool {
		return running(p) != l.lost && e2e.Condition(p, corev1.PodReady) == corev1.ConditionTrue
	})
}

// shims are the processes that serve the pod.
func (l *life) shims(ctx context.Context) ([]int, error) {
	client, err := l.srv.CRI(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	boxes, err := client.Runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{
		Filter: &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{cri.LabelPodUID: string(l.pod.UID)}}})
	if err != nil {
		return nil, err
	}
	pids, err := l.srv.Processes("shim")
	var out []int
	for _, pid := range pids {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended
		for _, b := range boxes.Items {
			if strings.Contains(string(command), b.Id) {
				out = append(out, pid)
			}
		}
	}
	return out, err
}

// endResolver kills the process that answers DNS, so that the next start starts it, with its faults.
func (tr *trial) endResolver() {
	tr.t.Helper()
	pids, err := tr.srv.Processes("resolver")
	if err != nil {
		tr.t.Fatal(err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			tr.t.Fatal(err)
		}
	}
}

// mountRemote mounts a file system that is not of this machine, as far as the server knows.
func (tr *trial) mountRemote() {
	tr.t.Helper()
	tr.remote = tr.t.TempDir()
	fs, err := hangfs.Mount(tr.remote)
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.t.Cleanup(fs.End)
}
