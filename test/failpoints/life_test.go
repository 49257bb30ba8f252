// SPDX-License-Identifier: Apache-2.0

package failpoints

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/wherryproject/wherry/test/e2e"
)

const (
	namespace = "failpoints"
	secret    = "words"
)

// life is that of one pod.
type life struct {
	*trial
	name  string
	stage *e2e.Stage
	want  *corev1.Pod // what is created
	pod   *corev1.Pod // as last seen
	lost  string      // the container that ran when the pod's shim was killed
}

// live creates a pod, uses it in every way, and deletes it.
func (tr *trial) live() {
	tr.lives++
	l := &life{trial: tr, name: fmt.Sprintf("life-%d", tr.lives), stage: tr.srv.NewStage(tr.t)}
	l.want = l.shape()
	l.do("create", l.create)
	l.do("ready", l.ready)
	l.do("debug", func(ctx context.Context) error {
		return l.says(ctx, "debugged", "debug", l.name, "-q", "--", "echo", "debugged")
	})
	l.do("image exec", func(ctx context.Context) error {
		return l.says(ctx, "secret", "exec", l.name, "-q", "-m", "wherry.dev/toolbox", "--", "cat", "/c/main/words/word")
	})
	l.do("exec", func(ctx context.Context) error {
		return l.says(ctx, "", "exec", l.name, "-c", "main", "--", "/tool", "tell", "/stage/journal", "main", "looked")
	})
	if l.alone {
		l.do("lose the shim", l.loseShim)
	}
	l.do("copy", l.copied)
	l.do("host port", l.reached)
	l.do("service", l.served)
	l.do("ready still", l.ready)
	l.leave()
	l.judge()
}

// leave deletes the pod.
func (l *life) leave() {
	l.do("delete", l.deleted)
	l.do("gone", l.gone)
	l.do("nothing left", l.nothingLeft)
	l.do("delete what it had", l.forget)
	l.do("its volume is gone", l.volumeGone)
}

// bystand brings up a pod that is there through all lives.
func (tr *trial) bystand() *life {
	l := &life{trial: tr, name: "bystander", stage: tr.srv.NewStage(tr.t)}
	l.want = l.shape()
	for i := range l.want.Spec.Containers {
		c := &l.want.Spec.Containers[i]
		c.Ports = nil // the host port is for those that come and go
		// Who looks for traces walks through what stays mounted, and this file system cannot list its folders.
		c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "remote" })
	}
	l.do("create the bystander", l.create)
	l.do("the bystander is ready", l.ready)
	return l
}

// unmoved checks that a bystander has noticed nothing: it is ready, and as long as only the server died, each container was started once.
func (l *life) unmoved() {
	l.faults = nil
	l.do("the bystander is ready still", l.ready)
	l.judge()
}

// shape is a pod with something of everything.
func (l *life) shape() *corev1.Pod {
	main := e2e.Serving(l.stage.Act("main", "-serve", "tcp:7000"),
		&corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 20, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: e2e.Port(7000)}}})
	main.Ports = []corev1.ContainerPort{{ContainerPort: 7000, HostPort: l.hostPort}}
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "room", MountPath: "/room", SubPath: "part"},
		corev1.VolumeMount{Name: "memory", MountPath: "/memory"}, corev1.VolumeMount{Name: secret, MountPath: "/words"},
		corev1.VolumeMount{Name: "kept", MountPath: "/kept"}, corev1.VolumeMount{Name: "remote", MountPath: "/remote", SubPath: "dir"})
	p := e2e.WithInit(l.stage.Pod(l.name, main), l.stage.Act("init", "-for", "20ms"),
		e2e.Sidecar(e2e.PreStop(l.stage.Act("side"), e2e.Tells("side", "pre"))))
	p.Spec.TerminationGracePeriodSeconds = new(int64(2))
	p.Spec.Volumes = append(p.Spec.Volumes,
		corev1.Volume{Name: "room", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		corev1.Volume{Name: "memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		corev1.Volume{Name: secret, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}},
		corev1.Volume{Name: "kept", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: l.name}}},
		corev1.Volume{Name: "remote", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: l.remote}}})
	return p
}

func (l *life) create(ctx context.Context) error {
	if err := l.furnish(ctx); err != nil {
		return err
	}
	pod, err := l.srv.Client.CoreV1().Pods(namespace).Create(ctx, l.want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // an answer was lost
		pod, err = l.srv.Client.CoreV1().Pods(namespace).Get(ctx, l.name, metav1.GetOptions{})
	}
	if err == nil {
		l.pod = pod
	}
	return err
}

// until waits for a state of the pod. That an acknowledged pod is lost is a finding.
func (l *life) until(ctx context.Context, is func(*corev1.Pod) bool) error {
	lw := cache.NewListWatchFromClient(l.srv.Client.CoreV1().RESTClient(), "pods", namespace, fields.OneTermEqualSelector("metadata.name", l.name))
	_, err := watchtools.UntilWithSync(ctx, lw, &corev1.Pod{}, func(store cache.Store) (bool, error) {
		if len(store.List()) == 0 {
			return false, finding("the pod, whose creation was acknowledged, is gone")
		}
		return false, nil
	}, func(e watch.Event) (bool, error) {
		pod, ok := e.Object.(*corev1.Pod)
		switch {
		case !ok:
			return false, nil
		case e.Type == watch.Deleted || pod.UID != l.pod.UID:
			return false, finding("the pod, whose creation was acknowledged, was replaced or deleted")
		}
		l.pod = pod
		return is(pod), nil
	})
	return err
}

func (l *life) ready(ctx context.Context) error {
	return l.until(ctx, func(p *corev1.Pod) bool { return e2e.Condition(p, corev1.PodReady) == corev1.ConditionTrue })
}

// says runs a command of wherry's, in whose output a word must be.
func (l *life) says(ctx context.Context, word string, command string, args ...string) error {
	cmd := l.srv.Wherry(ctx, append([]string{command, "-n", namespace, "--kubeconfig", l.srv.Kubeconfig}, args...)...)
	var out, msg bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &msg, time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s%s", command, err, out.String(), msg.String())
	}
	if !strings.Contains(out.String(), word) {
		return finding(fmt.Sprintf("%s ended well, but said %q instead of %q; %s", command, out.String(), word, msg.String()))
	}
	return nil
}

func (l *life) copied(ctx context.Context) error {
	to := filepath.Join(l.stage.Dir, "copy")
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := l.says(ctx, "", "cp", l.name+":/stage/journal", to, "-c", "main"); err != nil {
		return err
	}
	if text, err := os.ReadFile(to); err != nil || !strings.Contains(string(text), "main up") {
		return finding(fmt.Sprintf("cp ended well, but copied %q (%v)", text, err))
	}
	return nil
}

func (l *life) reached(ctx context.Context) error {
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", l.srv.NodeIP, l.hostPort))
	if err != nil {
		return err
	}
	return conn.Close()
}

func (l *life) deleted(ctx context.Context) error {
	err := l.srv.Client.CoreV1().Pods(namespace).Delete(ctx, l.name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(l.pod.UID))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (l *life) gone(ctx context.Context) error {
	pod, err := l.srv.Client.CoreV1().Pods(namespace).Get(ctx, l.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case pod.DeletionTimestamp == nil:
		return finding("the deletion, which was acknowledged, is forgotten")
	}
	l.pod = pod
	lw := cache.NewListWatchFromClient(l.srv.Client.CoreV1().RESTClient(), "pods", namespace, fields.OneTermEqualSelector("metadata.name", l.name))
	_, err = watchtools.UntilWithSync(ctx, lw, &corev1.Pod{},
		func(store cache.Store) (bool, error) { return len(store.List()) == 0, nil },
		func(e watch.Event) (bool, error) { return e.Type == watch.Deleted, nil })
	return err
}

// nothingLeft looks for traces. The node's files and processes are no API to watch, so this wait polls.
func (l *life) nothingLeft(ctx context.Context) error {
	for {
		left, err := l.srv.Traces(ctx, l.pod)
		if err == nil && len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				err = errors.Join(err, finding("left on the node:\n  "+strings.Join(left, "\n  ")))
			}
			return errors.Join(ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// judge reads the journal that the containers have written: Play looks for two at once.
func (l *life) judge() {
	play := l.stage.Play()
	for _, who := range []string{"init", "side", "main"} {
		if n := play.Count(who, "start"); n == 0 || n > 1 && l.strict {
			l.t.Errorf("RS-07 container %s of %s was started %d times, after %v:\n%s", who, l.name, n, l.trail, play)
		}
	}
}
