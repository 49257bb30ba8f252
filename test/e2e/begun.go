// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/test/images"
)

// awaitBegun waits until the test's tool has begun in the containers of a ready pod. A container without probes is
// ready when the runtime has started it, which on a busy machine is a good while before its program listens to signals
// and writes its first line: whoever sends it a signal at once, as PID 1, sends it to nobody, and whoever reads its
// journal reads nothing.
//
// It gives up after a while and leaves the judgement to the test: a container may have ended, or been restarted,
// meanwhile.
func (s *Space) awaitBegun(pod *corev1.Pod) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, soon)
	defer cancel()
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Image != images.ToolRef || len(c.Command) > 0 || len(c.Args) == 0 ||
			isInit(pod, c.Name) && c.RestartPolicy == nil {
			continue
		}
		switch c.Args[0] {
		case "sleep", "stubborn":
			s.awaitWord(ctx, pod.Name, c.Name)
		case "act":
			s.awaitStart(ctx, pod, c.Name)
		}
	}
}

// awaitWord waits for the first line of a container's log.
func (s *Space) awaitWord(ctx context.Context, pod, container string) {
	stream, err := s.Client.CoreV1().Pods(s.Namespace).GetLogs(pod,
		&corev1.PodLogOptions{Container: container, Follow: true}).Stream(ctx)
	if err != nil {
		return // the pod may be gone already
	}
	defer stream.Close()
	bufio.NewScanner(stream).Scan()
}

// awaitStart waits until the journal of the pod's stage has a start for each time that a container was started. Its
// file is no API to watch, so this wait polls.
func (s *Space) awaitStart(ctx context.Context, pod *corev1.Pod, container string) {
	i := slices.IndexFunc(pod.Spec.Volumes,
		func(v corev1.Volume) bool { return v.Name == "stage" && v.HostPath != nil })
	status := Status(pod, container)
	if i < 0 || status == nil {
		return
	}
	stage := &Stage{s.T, pod.Spec.Volumes[i].HostPath.Path}
	for stage.Play().Count(container, "start") <= int(status.RestartCount) && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}
