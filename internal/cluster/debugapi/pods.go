// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/ways"
	"github.com/wherryproject/wherry/internal/podspec"
)

// pod reads a pod of the request's namespace that has a node.
func (s *Server) pod(ctx context.Context, name string) (*corev1.Pod, error) {
	pod, err := s.client.CoreV1().Pods(request.NamespaceValue(ctx)).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, upstream("read pod "+name, err)
	}
	if pod.Spec.NodeName == "" {
		return nil, refusal(http.StatusConflict, wire.ReasonPodNotOnNode, name,
			"pod %s has no node yet, and so nothing that could be debugged: kubectl describe pod %s says what it waits for",
			name, name)
	}
	return pod, nil
}

// upstream is an error of kube-apiserver as the client gets it: that a pod is not there is the client's affair, that
// this API may not read it is its installation's.
func upstream(what string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return err
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return apierrors.NewInternalError(fmt.Errorf("the debugging API may not %s; install it again: %w", what, err))
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("the API of debugging cannot %s: %v", what, err))
}

// container is the one that is asked for, or the one that kubectl would take.
func container(pod *corev1.Pod, name string) (string, error) {
	if name == "" {
		name, _ = ways.Default(pod)
		return name, nil
	}
	return name, known(pod, name)
}

// known refuses a container that the pod does not have.
func known(pod *corev1.Pod, name string) error {
	names := order(pod)
	if slices.Contains(names, name) {
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("pod %s has no container %.100q: it has %s", pod.Name, name,
		strings.Join(names, ", ")))
}

// order is that of the pod's containers, those first that start first.
func order(pod *corev1.Pod) []string {
	of := map[podspec.Kind][]string{}
	for ref := range podspec.Containers(&pod.Spec) {
		of[ref.Kind] = append(of[ref.Kind], ref.Container.Name)
	}
	return slices.Concat(of[podspec.Init], of[podspec.Sidecar], of[podspec.Main], of[podspec.Ephemeral])
}

// about is the pod as its agent knows it. The node has made a static pod's containers for another uid than its mirror
// has; what a pod says of itself is no more than that: the agent compares name and namespace too.
func about(pod *corev1.Pod) wire.Pod {
	uid := string(pod.UID)
	if mirrored := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirrored != "" {
		uid = mirrored
	}
	return wire.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: uid}
}

// refusal is a Status with words of our own.
func refusal(code int32, reason metav1.StatusReason, pod, format string, args ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...),
		Details: &metav1.StatusDetails{Kind: "pods", Name: pod, Group: wire.Group},
	}}
}
