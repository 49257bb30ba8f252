// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/cluster/manifest"
	"github.com/wherryproject/wherry/internal/release"
)

func newUninstall(t cmdline.Terminal) *cobra.Command {
	var where reach.Flags
	var yes bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove from a cluster what install has installed",
		Long: `Delete what was installed by wherry cluster install, or by kubectl apply from wherry cluster manifest; it is found by its labels. What Helm
has installed, remove with Helm. Running sessions end. Bindings that you made to the ClusterRoles stay, but have no effect any more.`,
		Example: `  wherry cluster uninstall
  wherry cluster uninstall --context staging --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timeout <= 0 {
				return cmdline.WrongUse(cmd, "--timeout must be more than 0")
			}
			return uninstall(cmd.Context(), t, &where, yes, timeout)
		},
	}
	where.AddServerTo(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait until everything is gone")
	return cmd
}

// ours selects what is installed by its labels.
func ours() string {
	label := manifest.Label()
	return metav1.FormatLabelSelector(&label)
}

func uninstall(ctx context.Context, t cmdline.Terminal, where *reach.Flags, yes bool, timeout time.Duration) error {
	p, err := removable(ctx, where)
	if err != nil {
		return err
	}
	if len(p.objects) == 0 {
		fmt.Fprintln(t.Err, "there is nothing to remove")
		return nil
	}
	if !yes {
		if err := ask(t, p.Config.Host, p.objects); err != nil {
			return err
		}
	}
	// Until here nothing is changed, and a signal ends it as ever. The time begins here too, not with the question.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return cmdline.CalledOffBy(ctx, p.remove(waiting, t), "what was not deleted is still there: run it again")
}

// removable finds what there is to remove, if all of it may be.
func removable(ctx context.Context, where *reach.Flags) (*plan, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := connect(where)
	if err != nil {
		return nil, err
	}
	p := &plan{connection: c}
	if p.objects, err = c.installed(ctx); err != nil || len(p.objects) == 0 {
		return p, err
	}
	return p, p.allowed(ctx, "delete")
}

func ask(t cmdline.Terminal, host string, objects []*unstructured.Unstructured) error {
	if !plain.IsTerminal(t.Err) {
		return cmdline.ExitWith(cmdline.ExitUsage,
			errors.New("there is no terminal to ask for confirmation: use --yes"))
	}
	for _, o := range objects {
		fmt.Fprintln(t.Err, " ", title(o))
	}
	if !cmdline.Agrees(t, fmt.Sprintf("Delete these from %s, with all that is in the namespace?", host)) {
		return errors.New("nothing was changed")
	}
	return nil
}

// installed lists what is there, in the order in which it is to be deleted.
func (c *connection) installed(ctx context.Context) (all []*unstructured.Unstructured, err error) {
	kinds, err := kinds()
	if err != nil {
		return nil, err
	}
	for _, kind := range slices.Backward(kinds) {
		at, _, err := c.of(kind, metav1.NamespaceAll)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list, err := at.List(ctx, metav1.ListOptions{LabelSelector: ours()})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if o := &list.Items[i]; o.GetDeletionTimestamp() == nil {
				all = append(all, o)
			}
		}
	}
	return all, nil
}

// kinds are those of what is installed, in the order of the manifest.
func kinds() (all []schema.GroupVersionKind, err error) {
	defaults, err := manifest.Defaults()
	if err != nil {
		return nil, err
	}
	objects, err := manifest.Objects(defaults, release.Version())
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if kind := o.GroupVersionKind(); !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	return all, nil
}

// remove deletes all, and waits until the last of it is gone.
func (p *plan) remove(ctx context.Context, t cmdline.Terminal) error {
	for _, o := range p.objects {
		at, _, err := p.of(o.GroupVersionKind(), o.GetNamespace())
		if err != nil {
			return err
		}
		uid, background := o.GetUID(), metav1.DeletePropagationBackground
		err = at.Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &background,
			Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s: %w", title(o), err)
		}
		fmt.Fprintln(t.Err, title(o), "deleted")
	}
	for _, o := range p.objects {
		at, _, err := p.of(o.GroupVersionKind(), o.GetNamespace())
		if err == nil {
			err = gone(ctx, at, o)
		}
		if err != nil {
			return fmt.Errorf("%s is not gone yet: %w", title(o), err)
		}
	}
	return nil
}
