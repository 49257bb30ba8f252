// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/reach"
)

// manager is the field manager of what is applied.
const manager = "wherry-cluster"

type installation struct {
	values
	where   reach.Flags
	reset   bool
	wait    bool
	force   bool
	timeout time.Duration
}

func newInstall(t cmdline.Terminal) *cobra.Command {
	in := &installation{}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install or upgrade debugging in a cluster",
		Long: `Apply what wherry cluster manifest prints, and wait until the API answers and each node has its agent. Run it again, with this version or
another, to upgrade or change it: values chosen before are kept unless you give others (--reset-values: back to the defaults).

It needs the rights of a cluster administrator, since the agents are privileged pods. Your permissions are checked first: if one is missing,
nothing is changed. Nobody can debug with it until you bind one of its ClusterRoles.`,
		Example: `  wherry cluster install
  wherry cluster install --context staging --image registry.example.com/wherry:1
  wherry cluster install --node-selector pool=apps --max-ttl 1h
  wherry cluster install --reset-values`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if in.timeout <= 0 {
				return cmdline.WrongUse(cmd, "--timeout must be more than 0")
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return in.run(ctx, t)
		},
	}
	in.addTo(cmd)
	in.where.AddServerTo(cmd)
	f := cmd.Flags()
	f.BoolVar(&in.wait, "wait", true, "wait until everything runs")
	f.DurationVar(&in.timeout, "timeout", 5*time.Minute, "how long to wait")
	f.BoolVar(&in.reset, "reset-values", false,
		"forget the values of earlier installs: what is not given gets its default")
	f.BoolVar(&in.force, "force-conflicts", false, "take over what something else, such as Helm, has installed")
	return cmd
}

func (in *installation) run(ctx context.Context, t cmdline.Terminal) error {
	if _, err := in.chosen(t, nil); err != nil && in.file != "-" { // what is wrong in itself needs no cluster
		return err
	}
	c, err := connect(&in.where)
	if err != nil {
		return err
	}
	objects, kept, err := in.objects(ctx, t, c)
	if err != nil {
		return err
	}
	p := &plan{connection: c, objects: objects, force: in.force, watch: in.wait}
	if err := p.check(ctx); err != nil {
		return cmdline.CalledOffBy(ctx, err, "nothing was changed")
	}
	if kept != "" {
		fmt.Fprintln(t.Err, kept)
	}
	if err := p.apply(ctx, t); err != nil {
		return cmdline.CalledOffBy(ctx, err, "a part was applied: run it again, or wherry cluster uninstall")
	}
	if !in.wait {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, in.timeout)
	defer cancel()
	err = c.await(waiting, t, namespaceOf(objects))
	if ctx.Err() != nil {
		return cmdline.CalledOffBy(ctx, err, "everything was applied: wherry cluster status says how far it is")
	}
	return c.printAgents(context.WithoutCancel(ctx), t, err)
}

// namespaceOf is the namespace that objects are installed in.
func namespaceOf(objects []*unstructured.Unstructured) string {
	for _, o := range objects {
		if o.GetKind() == "DaemonSet" {
			return o.GetNamespace()
		}
	}
	return ""
}

// plan is what is to be applied.
type plan struct {
	*connection
	objects []*unstructured.Unstructured
	force   bool
	watch   bool     // how far it is
	before  []string // the versions of the objects that are there; "": it is not; unseen: it may be
}

// check finds out whether all can be applied.
func (p *plan) check(ctx context.Context) error {
	if err := p.elsewhere(ctx); err != nil {
		return err
	}
	if err := p.allowed(ctx, "patch", "create"); err != nil {
		return err
	}
	if p.watch {
		if err := p.watchable(ctx); err != nil {
			return err
		}
	}
	var refused []error
	for _, o := range p.objects {
		old, err := p.dryRun(ctx, o)
		if err != nil {
			refused = append(refused, fmt.Errorf("%s: %w", title(o), err))
		}
		p.before = append(p.before, old)
	}
	if len(refused) == 0 {
		return nil
	}
	return fmt.Errorf("the cluster does not accept all of it; nothing was changed:\n%w", errors.Join(refused...))
}

// elsewhere refuses a second installation.
func (p *plan) elsewhere(ctx context.Context) error {
	_, at, err := p.registration(ctx)
	switch want := namespaceOf(p.objects); {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err): // which is reported with the other rights
		return nil
	case err == nil && at != want:
		return fmt.Errorf("debugging is installed already, in namespace %s: name it with --namespace %s, "+
			"or call wherry cluster uninstall first", at, at)
	}
	return err
}

// dryRun asks the cluster whether it would take an object, and returns the version of the one that is there.
func (p *plan) dryRun(ctx context.Context, o *unstructured.Unstructured) (before string, err error) {
	at, _, err := p.of(o.GroupVersionKind(), o.GetNamespace())
	if err != nil {
		return "", err
	}
	switch old, err := at.Get(ctx, o.GetName(), metav1.GetOptions{}); {
	case err == nil:
		before = old.GetResourceVersion()
	case apierrors.IsForbidden(err): // one may apply a Secret that one may not read
		before = unseen
	case !apierrors.IsNotFound(err):
		return "", err
	}
	_, err = at.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: p.force,
		DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierrors.IsNotFound(err):
		err = nil // its namespace, or the role that it binds, is yet to be made
	case apierrors.IsConflict(err):
		err = fmt.Errorf("%w\nsomething else has applied it: use that, or take it over with --force-conflicts", err)
	}
	return before, err
}

// apply applies all, in order.
func (p *plan) apply(ctx context.Context, t cmdline.Terminal) error {
	for i, o := range p.objects {
		at, _, err := p.of(o.GroupVersionKind(), o.GetNamespace())
		if err != nil {
			return err
		}
		now, err := at.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: p.force})
		if err != nil {
			return fmt.Errorf("%s: %w", title(o), err)
		}
		fmt.Fprintln(t.Err, title(o), word(p.before[i], now.GetResourceVersion()))
	}
	return nil
}

// unseen is the version of an object that one may not read.
const unseen = "unseen"

// word says what applying has done, from the versions before and after.
func word(before, after string) string {
	switch before {
	case "":
		return "created"
	case unseen:
		return "applied"
	case after:
		return "unchanged"
	}
	return "configured"
}
