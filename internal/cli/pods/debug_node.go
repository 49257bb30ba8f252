// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/signal"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/debug/ways"
)

// nodeMeant is the name of the node that is meant, as kubectl debug takes it; "" if it is a pod that is meant.
func nodeMeant(name string) string {
	for _, kind := range []string{"node/", "nodes/", "no/"} {
		if node, ok := strings.CutPrefix(name, kind); ok {
			return node
		}
	}
	return ""
}

const (
	nodePodPatience = time.Minute
	nodePodRemoval  = 10 * time.Second
)

// node looks at a node from a pod in the node's own namespaces, which is deleted when the session ends.
func (f *debugFlags) node(ctx context.Context, t cmdline.Terminal, node string, command []string) error {
	switch {
	case f.Image != "":
		return cmdline.ExitWith(cmdline.ExitUsage,
			fmt.Errorf("node debugging uses the built-in toolbox; for another image: wherry kubectl debug node/%s --image %s -it", node, f.Image))

	case f.Container != "" || f.Target != "" || f.User != "":
		return cmdline.ExitWith(cmdline.ExitUsage,
			errors.New("-c, --target and --user only apply to pods: leave them out for a node"))
	}
	pod, err := ways.NodePod(node, f.Profile, f.TTL)
	if err != nil {
		return cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	c, err := f.Connect()
	if err != nil {
		return err
	}
	foreign, err := c.Elsewhere(ctx)
	if err != nil {
		return err
	}
	is, err := c.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsForbidden(err):
		return err
	case err == nil && foreign != nil && !isOurs(is):
		return fmt.Errorf("node %s is not one of Wherry's, which alone have the built-in toolbox; with an image of a registry: kubectl debug node/%s -it --image busybox:1.37 --profile sysadmin",
			node, node)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	pods := c.CoreV1().Pods(f.Namespace)
	if pod, err = pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), nodePodRemoval)
		defer cancel()
		if err := pods.Delete(after, pod.Name, *metav1.NewDeleteOptions(0)); err != nil && !apierrors.IsNotFound(err) {
			fmt.Fprintf(t.Err, "cannot delete pod %s: %v\n", pod.Name, err)
		}
	}()
	f.say(t, "node %s, through pod %s, which is deleted when you leave; the node's files are under /host", node,
		pod.Name)
	if err := awaitNodePod(c, ctx, pod); err != nil {
		return err
	}
	return cmdline.ExitWith(c.Stream(ctx, t, f.Namespace, nodeSession(pod.Name, command, f.TTY), reach.Notices{}))
}

// nodeSession is the request for a command in a pod that looks at a node; without one it is a shell.
func nodeSession(pod string, command []string, tty bool) ask.Session {
	if len(command) == 0 {
		command = []string{"sh"}
	}
	q := url.Values{"container": {ways.NodeContainer}, "command": command, "stdin": {"true"}, "stdout": {"true"}}
	if tty {
		q.Set("tty", "true")
	} else {
		q.Set("stderr", "true")
	}
	return ask.Session{Pod: pod, Subresource: "exec", Query: q, Stdin: true, TTY: tty}
}

func awaitNodePod(c *reach.Client, ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, nodePodPatience)
	defer cancel()
	_, err := watchtools.Until(ctx, pod.ResourceVersion, watchOf(c, pod.Namespace, pod.Name),
		func(e watch.Event) (bool, error) {
			now, ok := e.Object.(*corev1.Pod)
			if !ok {
				return false, nil
			}
			if e.Type == watch.Deleted {
				return false, fmt.Errorf("pod %s was deleted", now.Name)
			}
			return ways.NodePodUp(now)
		})
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("pod %s with image %s did not start on node %s within %s: see wherry kubectl describe pod %s",
			pod.Name, debugask.ToolboxImage, pod.Spec.NodeName, nodePodPatience, pod.Name)
	}
	return err
}
