// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/debug/permit"
	"github.com/wherryproject/wherry/internal/debug/record"
	"github.com/wherryproject/wherry/internal/exitcode"
	"github.com/wherryproject/wherry/internal/podspec"
)

// nodePatience is how long a node may take to say anything about a new debug container. Pulling its image may take
// longer than that, but then the node says that it is on its way.
const nodePatience = 30 * time.Second

// errUntold ends a wait of which nothing was heard.
var errUntold = errors.New("no response from the node")

// follow calls look with the pod and with every version of it that comes, until look is done or fails. It returns the
// last version. untold bounds the wait for look to say that something was heard.
func (d *Debugger) follow(ctx context.Context, pod *corev1.Pod,
	look func(*corev1.Pod) (done, heard bool, err error)) (*corev1.Pod, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done, heard, err := look(pod)
	if done || err != nil {
		return pod, err
	}
	w, err := d.pods.Watch(d.pods.Within(ctx, pod.Namespace), &metainternal.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name), ResourceVersion: pod.ResourceVersion,
	})
	if err != nil {
		return pod, err
	}
	defer w.Stop()
	patience := time.NewTimer(nodePatience)
	defer patience.Stop()
	for {
		select {
		case <-ctx.Done():
			return pod, ctx.Err()
		case <-patience.C:
			if !heard {
				return pod, errUntold
			}
		case e, ok := <-w.ResultChan():
			if !ok {
				return pod, apierrors.NewServiceUnavailable("the server is stopping: try again in a moment")
			}
			now, isPod := e.Object.(*corev1.Pod)
			switch {
			case e.Type == watch.Error:
				return pod, apierrors.FromObject(e.Object)
			case !isPod || e.Type == watch.Bookmark:
				continue
			case e.Type == watch.Deleted || now.UID != pod.UID:
				return pod, permit.Refusal(http.StatusConflict, metav1.StatusReasonConflict, pod.Name,
					"pod %s was deleted in the meantime", pod.Name)
			}
			pod = now
			if done, heard, err = look(pod); done || err != nil {
				return pod, err
			}
		}
	}
}

// begun waits until a run of a debug container runs or has ended, or cannot start; then the error says why, at once.
func (d *Debugger) begun(ctx context.Context, pod *corev1.Pod, name string, run int) (*corev1.Pod, error) {
	pod, err := d.follow(ctx, pod, func(p *corev1.Pod) (bool, bool, error) {
		s := podspec.DebugStateOf(p, name)
		done, err := judge(p, name, run, s)
		return done, s.Begun, err
	})
	if errors.Is(err, errUntold) {
		err = permit.Refusal(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, pod.Name,
			"node %s has reported nothing about debug container %q of pod %s for %s: check that the node is ready",
			pod.Spec.NodeName, name, pod.Name, nodePatience)
	}
	return pod, err
}

// judge reports whether a run of a debug container has begun, and fails when it cannot. (Pure.)
func judge(pod *corev1.Pod, name string, run int, s podspec.DebugState) (begun bool, err error) {
	switch {
	case s.Phase == podspec.DebugAbsent || s.Run != run:
		return false, permit.Refusal(http.StatusConflict, metav1.StatusReasonConflict, pod.Name,
			"debug container %q of pod %s was replaced by another with the same name", name, pod.Name)
	case s.Phase == podspec.DebugRunning:
		return true, nil
	case s.Phase == podspec.DebugEnded && s.Terminated.StartedAt.IsZero() ||
		s.Phase == podspec.DebugEnded && isStartError(s):
		return false, cannotStart(pod, name, s)
	case s.Phase == podspec.DebugEnded:
		return true, nil
	case s.Phase == podspec.DebugFailing:
		return false, cannotStart(pod, name, s)
	case pod.DeletionTimestamp != nil:
		return false, permit.Refusal(http.StatusConflict, metav1.StatusReasonConflict, pod.Name,
			"pod %s is being deleted", pod.Name)
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return false, permit.Refusal(http.StatusConflict, metav1.StatusReasonConflict, pod.Name,
			"pod %s has ended (%s) before debug container %q could start", pod.Name, pod.Status.Phase, name)
	}
	return false, nil
}

// How long a node, which may be busy, has to say that a debug container has ended: after its streams have, which it
// closed, and after the client has left it.
const (
	closedPatience = time.Minute // as wherry debug has (internal/cli/session)
	leftPatience   = 5 * time.Second
)

// endPatience is how long the end of a run is waited for when its streams are over. (Pure.)
func endPatience(closed bool) time.Duration {
	if closed {
		return closedPatience
	}
	return leftPatience
}

// ended is how a run of a debug container has ended, when its streams are over: for the record, which is made whether
// the client is still there or not.
func (d *Debugger) ended(ctx context.Context, pod *corev1.Pod, name string, run int, closed bool) record.End {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience(closed))
	defer cancel()
	var end record.End
	obj, err := d.pods.Get(d.pods.Within(ctx, pod.Namespace), pod.Name, &metav1.GetOptions{})
	if now, ok := obj.(*corev1.Pod); err == nil && ok && now.UID == pod.UID {
		_, err = d.follow(ctx, now, func(p *corev1.Pod) (done, heard bool, _ error) {
			end, done = endOfRun(p, name, run)
			return done, true, nil
		})
	} else {
		err = errUntold
	}
	if err != nil && ctx.Err() == nil {
		end = record.End{Reason: "unknown: the pod is gone, or the server stopped"}
	}
	return end
}

// endOfRun returns how a run of a debug container has ended, if it has; until then, what is to be reported of one that
// goes on. (Pure.)
func endOfRun(pod *corev1.Pod, name string, run int) (end record.End, done bool) {
	s := podspec.DebugStateOf(pod, name)
	switch {
	case s.Phase == podspec.DebugAbsent || s.Run != run:
		return record.End{Reason: "unknown: another container has its name"}, true
	case s.Phase == podspec.DebugEnded:
		return record.End{ExitCode: &s.Terminated.ExitCode, Reason: s.Reason}, true
	}
	return record.End{Reason: "left: the container is still running"}, false
}

// isStartError: the runtime made the container, and its command could not be run.
func isStartError(s podspec.DebugState) bool {
	return s.Reason == "StartError" || s.Reason == "ContainerCannotRun"
}

// cannotStart says in the node's words why a debug container does not start. If it is because of its command, the
// details hold the exit code that shells and docker give: 127 when it was not found, 126 when it is not to be run.
func cannotStart(pod *corev1.Pod, name string, s podspec.DebugState) error {
	words := s.Reason
	if s.Message != "" {
		words = fmt.Sprintf("%s: %s", s.Reason, exitcode.Plain(s.Message))
	}
	err := permit.Refusal(http.StatusBadRequest, metav1.StatusReason(s.Reason), pod.Name,
		"debug container %q of pod %s cannot start: %s", name, pod.Name, words)
	if code := commandCode(s); code != 0 {
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: debugask.CauseExitCode, Message: strconv.Itoa(code)}}
	}
	return err
}

// commandCode is the exit code for a command that could not be run, or 0 when it is not the command's fault.
func commandCode(s podspec.DebugState) int {
	if !isStartError(s) && s.Reason != "RunContainerError" {
		return 0
	}
	code := exitcode.Of(s.Message)
	if code == 0 && isStartError(s) {
		return exitcode.CannotRun
	}
	return code
}
