// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/cli/progress"
)

// copyLogs copies a container's output: its two streams to where each belongs, or all of it to standard output if the
// server does not tell them apart.
func (f *follower) copyLogs(ctx context.Context, container string) {
	if !f.splitsLogs(ctx, container) {
		f.copyLog(ctx, container, nil)
		return
	}
	var both sync.WaitGroup
	both.Go(func() { f.copyLog(ctx, container, new(corev1.LogStreamStdout)) })
	both.Go(func() { f.copyLog(ctx, container, new(corev1.LogStreamStderr)) })
	both.Wait()
}

// copyLog copies one of the two streams of a container's output, or both if which is nil.
func (f *follower) copyLog(ctx context.Context, container string, which *string) {
	opts := &corev1.PodLogOptions{Container: container, Follow: true, Stream: which}
	stream, err := f.owner.Client.CoreV1().Pods(f.self.Namespace).GetLogs(f.self.Name, opts).Stream(ctx)
	if err == nil {
		defer stream.Close()
		w := f.owner.Screen.Log(f.self.Name, container, which != nil && *which == corev1.LogStreamStderr)
		defer w.Close()
		_, err = io.Copy(w, stream)
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && f.firstCut(container) {
		f.owner.Screen.Show(f.self.Name, progress.Line{Container: container, Trouble: true,
			Text: fmt.Sprintf("its log was cut off, see all of it with wherry kubectl logs%s %s -c %s: %v",
				namespaceFlag(f.self.Namespace), f.self.Name, container, err)})
	}
}

// firstCut reports whether a container's log breaks off for the first time: both its streams do.
func (f *follower) firstCut(container string) bool {
	f.cutMu.Lock()
	defer f.cutMu.Unlock()
	before := f.cut[container]
	f.cut[container] = true
	return !before
}

// noStream is the name of no stream.
const noStream = "None"

// splitsLogs reports whether the server can give one stream of a log without the other. Those before Kubernetes 1.32
// take no notice when they are asked for one, and would give all of the log twice; later ones may have that turned off.
// So it is asked, once in a run, for a stream that does not exist, which only a server that knows the parameter refuses
// as such.
func (f *follower) splitsLogs(ctx context.Context, container string) bool {
	l := &f.owner.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known {
		return l.split
	}
	opts := &corev1.PodLogOptions{Container: container, Stream: new(noStream), LimitBytes: new(int64(1))}
	stream, err := f.owner.Client.CoreV1().Pods(f.self.Namespace).GetLogs(f.self.Name, opts).Stream(ctx)
	switch {
	case err == nil:
		stream.Close()
		l.known, l.split = true, false
	case aboutStream(err, metav1.CauseTypeForbidden):
		l.known, l.split = true, false
	case aboutStream(err, metav1.CauseTypeFieldValueNotSupported):
		l.known, l.split = true, true
	default: // reading the log itself will report that
		return true
	}
	return l.split
}

// splitting is what is known of a server's logs.
type splitting struct {
	mu           sync.Mutex
	known, split bool
}

// aboutStream reports whether an error is of this kind and about the parameter that asks for one stream.
func aboutStream(err error, kind metav1.CauseType) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Details != nil && slices.ContainsFunc(status.ErrStatus.Details.Causes,
		func(c metav1.StatusCause) bool {
			return c.Type == kind && c.Field == "stream"
		})
}
