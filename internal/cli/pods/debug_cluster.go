// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// elsewhere debugs a pod of a cluster that is not Wherry's: beside the pod where debug.wherry.dev is installed and an
// agent runs (DA-05), else in the way of kubectl debug (DA-10).
func (f *debugFlags) elsewhere(ctx context.Context, t cmdline.Terminal, kubectl func(args ...string) int,
	foreign *reach.Foreign, pod string, command []string) error {
	why := error(foreign)
	if foreign.Serves {
		if f.Container != "" {
			return cmdline.ExitWith(cmdline.ExitUsage,
				errors.New("-c names a debug container, and in this cluster a debugger is beside the pod, not in it: leave it out; --target names the container to look at"))
		}
		code, err := f.beside(ctx, t, pod, command)
		if !reach.NoAgent(err) {
			return cmdline.ExitWith(code, err)
		}
		why = err
	}
	if err := f.notOnHost(); err != nil {
		return err
	}
	return f.asKubectl(ctx, t, kubectl, why, pod, command)
}

// beside runs a debugger beside a pod of a cluster that has debug.wherry.dev.
func (f *debugFlags) beside(ctx context.Context, t cmdline.Terminal, pod string, command []string) (int, error) {
	c, err := f.Connect()
	if err != nil {
		return 0, err
	}
	end := "\n"
	if f.TTY { // the terminal is in raw mode when the server answers
		end = "\r\n"
	}
	notices := reach.Notices{Before: func() {
		f.say(t, "%s", f.AnnouncementBeside(pod))
	}}
	if !f.Quiet {
		notices.Note = func(text string) { fmt.Fprint(plain.Own(t.Err), plain.Text(text)+end) }
	}
	return c.Stream(ctx, t, f.Namespace, f.Shell(pod, command, f.writable, f.host.Quantities(), os.Getenv("TERM")),
		notices)
}

// flagsElsewhere refuses flags that mean nothing for a pod of Wherry's, and mean something for one of a cluster that
// has debug.wherry.dev.
func (f *debugFlags) flagsElsewhere(ctx context.Context) error {
	err := f.notOnHost()
	if err == nil || !f.host.OnlyLimits() || !servesDebug(ctx, &f.Flags) {
		return err
	}
	return nil
}

// servesDebug reports whether the cluster is another than Wherry's and has debug.wherry.dev. One that cannot be asked
// is not taken for that.
func servesDebug(ctx context.Context, f *reach.Flags) bool {
	c, err := f.Connect()
	if err != nil {
		return false
	}
	foreign, err := c.Elsewhere(ctx)
	return err == nil && foreign != nil && foreign.Serves
}

// mostAsked bounds how many pods are asked about at once.
const mostAsked = 8

// sessionsOf lists the sessions beside pods of a cluster that has debug.wherry.dev; none where there is no such. Beside
// an error is what was found in spite of it.
func sessionsOf(ctx context.Context, c *reach.Client, pods []corev1.Pod) ([]debugContainer, error) {
	foreign, err := c.Elsewhere(ctx)
	if err != nil || foreign == nil || !foreign.Serves {
		return nil, err
	}
	found := make([][]debugContainer, len(pods))
	errs := make([]error, len(pods))
	var work errgroup.Group
	work.SetLimit(mostAsked)
	for i := range pods {
		work.Go(func() error {
			found[i], errs[i] = running(ctx, c, &pods[i])
			return nil
		})
	}
	_ = work.Wait() // each has its own
	all := slices.Concat(found...)
	return all, unheard(pods, errs, len(all) > 0)
}

// mostNamed bounds how many pods an error names.
const mostNamed = 3

// unheard says which pods' sessions are not known, and why those of the first are not; nil if all are. That one may not
// see them is none where others are seen: one may in one namespace, perhaps, and not in another. (Pure.)
func unheard(pods []corev1.Pod, errs []error, some bool) error {
	var names []string
	var first, refused error
	for i, err := range errs {
		if apierrors.IsForbidden(err) {
			refused = cmp.Or(refused, err)
		} else if err != nil {
			names, first = append(names, pods[i].Namespace+"/"+pods[i].Name), cmp.Or(first, err)
		}
	}
	switch n := len(names) - mostNamed; {
	case first == nil && some:
		return nil
	case first == nil:
		return refused
	case n > 0:
		names = append(names[:mostNamed], fmt.Sprintf("%d more", n))
	}
	return fmt.Errorf("those of %s: %w", strings.Join(names, ", "), first)
}

// running are the sessions beside a pod. A pod on a node without an agent has none.
func running(ctx context.Context, c *reach.Client, p *corev1.Pod) ([]debugContainer, error) {
	if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return nil, nil
	}
	answer := c.CoreV1().RESTClient().Get().AbsPath(wire.Base, "namespaces", p.Namespace, "pods", p.Name,
		wire.Sessions).Do(ctx)
	err := answer.Error() // with the words and the reason of the API, which Raw and DoRaw leave out
	if reach.NoAgent(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	text, rawErr := answer.Raw()
	if err = cmp.Or(err, rawErr); err != nil {
		return nil, err
	}
	var list wire.RunningList
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("the sessions of pod %s: %w", p.Name, err)
	}
	var all []debugContainer
	for _, s := range list.Items {
		d := debugContainer{Namespace: p.Namespace, Pod: p.Name, Name: s.ID,
			Image: cmp.Or(s.Image, debugask.ToolboxImage), Command: s.Command, Target: s.Container, Status: "Running",
			StartedAt: &metav1.Time{Time: s.Since}, User: s.By}
		d.age = age(d.StartedAt, time.Now())
		if !s.Until.IsZero() {
			d.StopAt = &metav1.Time{Time: s.Until}
		}
		all = append(all, d)
	}
	return all, nil
}

// stopSession ends a session beside a pod of a cluster that has debug.wherry.dev.
func stopSession(ctx context.Context, c *reach.Client, namespace, pod, id string) error {
	return c.CoreV1().RESTClient().Delete().AbsPath(wire.Base, "namespaces", namespace, "pods", pod,
		wire.Sessions).Param(wire.ParamSession, id).Do(ctx).Error()
}
