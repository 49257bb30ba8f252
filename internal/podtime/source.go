// SPDX-License-Identifier: Apache-2.0

package podtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/podspec"
	"github.com/wherryproject/wherry/internal/timeline"
)

// Source fetches timelines.
type Source struct {
	Client kubernetes.Interface
}

// Unknown says that there is no timeline of a pod.
type Unknown struct{ text string }

func (u *Unknown) Error() string { return u.text }

// Get fetches the timeline of a pod, or of the last one of that name that a node remembers.
func (s Source) Get(ctx context.Context, namespace, name string) (h timeline.History, err error) {
	body, err := s.open(ctx, namespace, name, "", "")
	if err != nil {
		return h, err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(&h); err != nil {
		return h, fmt.Errorf("the answer for pod %s/%s is not a timeline: %w", namespace, name, err)
	}
	return h, nil
}

// Names fetches the timeline of a pod with the names that it has looked up.
func (s Source) Names(ctx context.Context, namespace, name string) (h timeline.History, err error) {
	body, err := s.open(ctx, namespace, name, timeline.Names, "1")
	if err != nil {
		return h, err
	}
	defer body.Close()
	return h, json.NewDecoder(body).Decode(&h)
}

// Of fetches the timeline of a very pod that was bound to a node.
func (s Source) Of(ctx context.Context, pod *corev1.Pod) (h timeline.History, err error) {
	body, err := s.open(ctx, pod.Namespace, pod.Name, "uid", string(pod.UID))
	if err != nil {
		return h, err
	}
	defer body.Close()
	return h, json.NewDecoder(body).Decode(&h)
}

// open asks for a timeline as request does. An error has words, also where a server has answered without any.
func (s Source) open(ctx context.Context, namespace, name, param, value string) (io.ReadCloser, error) {
	body, err := s.request(ctx, namespace, name, param, value)
	if err != nil && err.Error() == "" {
		return nil, fmt.Errorf("the server gives no timeline of pod %s/%s, and does not say why%w", namespace, name,
			err)
	}
	return body, err
}

// request asks for a timeline, with a parameter unless it has no name: as the pod's subresource, and where the API
// server is of another make through its proxy to the node.
func (s Source) request(ctx context.Context, namespace, name, param, value string) (io.ReadCloser, error) {
	with := func(r *rest.Request) (io.ReadCloser, error) {
		if param != "" {
			r = r.Param(param, value)
		}
		return r.Stream(ctx)
	}
	body,
		err := with(s.Client.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").Name(name).SubResource(timeline.Subresource))
	if err == nil || !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return body, err
	}
	if why := whyNone(err, namespace, name); why != nil {
		return nil, why
	}
	node, byNode := s.find(ctx, namespace, name)
	if byNode == nil {
		if body, byNode = with(s.ask(node, namespace, name)); byNode == nil {
			return body, nil
		}
	}
	switch {
	case apierrors.IsForbidden(err) && apierrors.IsForbidden(byNode):
		return nil, fmt.Errorf("you may not read the timelines of pods in namespace %s (get pods/timeline): %w",
			namespace, err)
	case node != "":
		return nil, explain(byNode, node, namespace, name)
	}
	return nil, byNode
}

// whyNone is the reason of wherry's API server for not having a timeline; nil if the error is about anything else.
func whyNone(err error, namespace, name string) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Details == nil {
		return nil
	}
	for _, c := range status.ErrStatus.Details.Causes {
		switch string(c.Type) {
		case timeline.CauseUnbound:
			return &Unbound{Pod: namespace + "/" + name, Why: c.Message}
		case timeline.CauseUnknown:
			return &Unknown{status.ErrStatus.Message}
		case timeline.CauseNotKept:
			return errors.New(status.ErrStatus.Message)
		}
	}
	return nil
}

// pause is how long is waited before a broken stream is taken up again.
const pause = time.Second

// Follow calls hear with the timeline and then with what changes of it, until the pod is gone or ctx ends. It waits for
// a pod that has no node yet, and survives restarts of the node's agent; then it begins with the whole again.
func (s Source) Follow(ctx context.Context, namespace, name string, hear func(timeline.History)) error {
	for heard := false; ; {
		gone, err := s.stream(ctx, namespace, name, func(h timeline.History) { heard = true; hear(h) })
		if gone {
			return nil
		}
		var waits *Unbound
		var unknown *Unknown
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil, errors.As(err, &waits), heard && !apierrors.IsForbidden(err):
		case errors.As(err, &unknown) && s.exists(ctx, namespace, name): // its node has not heard of it yet
		default:
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

func (s Source) exists(ctx context.Context, namespace, name string) bool {
	_, err := s.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	return err == nil
}

// stream hears one stream to its end and reports whether that was the pod's.
func (s Source) stream(ctx context.Context, namespace, name string,
	hear func(timeline.History)) (gone bool, err error) {
	body, err := s.open(ctx, namespace, name, "watch", "1")
	if err != nil {
		return false, err
	}
	defer body.Close()
	for in := json.NewDecoder(body); ; {
		var part timeline.History
		if err := in.Decode(&part); err != nil {
			if errors.Is(err, io.EOF) {
				return false, nil
			}
			return false, fmt.Errorf("the timeline's stream broke off: %w", err)
		}
		hear(part)
		if part.Gone {
			return true, nil
		}
	}
}

// ask is the request for a timeline through the API server's proxy to the node.
func (s Source) ask(node, namespace, name string) *rest.Request {
	return s.Client.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy", "timeline", namespace,
		name)
}

// Unbound says that a pod has no node that could keep its timeline.
type Unbound struct{ Pod, Why string }

func (u *Unbound) Error() string {
	text := "pod " + u.Pod + " has no node yet, so nothing has happened to it"
	if u.Why != "" {
		text += ": " + u.Why
	}
	return text
}

// find names the node that keeps a pod's timeline.
func (s Source) find(ctx context.Context, namespace, name string) (string, error) {
	pod, err := s.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return s.search(ctx, namespace, name)
	case err != nil:
		return "", err
	case pod.Spec.NodeName != "":
		return pod.Spec.NodeName, nil
	}
	u := &Unbound{Pod: namespace + "/" + name}
	if c := podspec.Condition(&pod.Status, corev1.PodScheduled); c != nil {
		u.Why = c.Message
	}
	return "", u
}

// search asks every node for a pod that the API server does not know any more.
func (s Source) search(ctx context.Context, namespace, name string) (string, error) {
	unknown := &Unknown{fmt.Sprintf("there is no pod %s in namespace %s, and no node remembers one", name, namespace)}
	nodes, err := s.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return "", unknown
	}
	if err != nil {
		return "", err
	}
	for i := range nodes.Items {
		node := nodes.Items[i].Name
		if s.ask(node, namespace, name).Do(ctx).Error() == nil {
			return node, nil
		}
	}
	return "", unknown
}

// explain words what a node's refusal means.
func explain(err error, node, namespace, name string) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("this API server is not wherry's: the node keeps the timeline, and you may not ask it (get nodes/proxy): %w", err)
	case apierrors.IsNotFound(err) && strings.Contains(bodyOf(err), "keeps no timeline"):
		return &Unknown{fmt.Sprintf("node %s has not heard of pod %s/%s", node, namespace, name)}
	case apierrors.IsNotFound(err):
		return fmt.Errorf("node %s keeps no timelines: its agent is not wherry's", node)
	}
	return err
}

// bodyOf is the body of a server's answer that is no Kubernetes Status.
func bodyOf(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}
	text := status.Status().Message
	if d := status.Status().Details; d != nil {
		for _, c := range d.Causes {
			text += " " + c.Message
		}
	}
	return text
}
