// SPDX-License-Identifier: Apache-2.0

package pull

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
)

const (
	// leaseLabel names the image that a lease of ours is for.
	leaseLabel = "wherry.dev/pull"
	// whilePulling is how long a lease keeps what a pull brings if nobody ends it, as after the server was killed; it
	// is containerd's own for its client.
	whilePulling = 24 * time.Hour
	// afterFailure is how long what a failed pull has brought is kept. Pods try again after five minutes at most.
	afterFailure = time.Hour
)

// lease keeps what a pull brings from garbage collection. containerd's client would give its own up with the pull, and
// with it half a layer.
type lease struct {
	p   *Puller
	ref string
	leases.Lease
}

func (p *Puller) lease(ctx context.Context, ref string) (*lease, error) {
	l, err := p.newLease(ctx, ref, whilePulling)
	if err != nil {
		return nil, err
	}
	return &lease{p, ref, l}, nil
}

func (p *Puller) newLease(ctx context.Context, ref string, d time.Duration) (leases.Lease, error) {
	return p.Client.LeasesService().Create(ctx, leases.WithRandomID(), leases.WithExpiration(d),
		leases.WithLabel(leaseLabel, ref))
}

// in is a context in which everything is kept by the lease.
func (l *lease) in(ctx context.Context) context.Context { return leases.WithLease(ctx, l.ID) }

// all are the leases for the image: this one, and those that earlier pulls have left.
func (l *lease) all(ctx context.Context) ([]leases.Lease, error) {
	return l.p.Client.LeasesService().List(ctx, fmt.Sprintf("labels.%q==%q", leaseLabel, l.ref))
}

// done gives up what is kept: the image keeps it now.
func (l *lease) done(ctx context.Context) error { return l.drop(ctx) }

// drop deletes all leases for the image.
func (l *lease) drop(ctx context.Context, opts ...leases.DeleteOpt) error {
	ctx = context.WithoutCancel(ctx)
	all, err := l.all(ctx)
	errs := []error{err}
	for _, one := range all {
		if err := l.p.Client.LeasesService().Delete(ctx, one, opts...); err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// failed keeps what the pull has brought for the next one, or drops it if that is of no use.
func (l *lease) failed(ctx context.Context, why error) error {
	if !l.p.Stopping() && useless(ctx, why) {
		return l.drop(ctx, leases.SynchronousDelete)
	}
	ctx = context.WithoutCancel(ctx)
	all, err := l.all(ctx)
	if err != nil {
		return err
	}
	store := l.p.Client.LeasesService()
	kept, err := l.p.newLease(ctx, l.ref, afterFailure)
	if err != nil {
		return err
	}
	for _, one := range all {
		parts, err := store.ListResources(ctx, one)
		for _, part := range parts {
			if err == nil {
				err = store.AddResource(ctx, kept, part)
			}
		}
		if err == nil {
			err = store.Delete(ctx, one)
		}
		if err != nil && !errdefs.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// Drop gives up what failed pulls have left for the next ones, as where the disk needs room: it is gone from there when
// this returns. Pulls that are under way keep what they have.
func (p *Puller) Drop(ctx context.Context) error {
	ctx = namespaces.WithNamespace(ctx, p.Namespace)
	all, err := p.Client.LeasesService().List(ctx, fmt.Sprintf("labels.%q", leaseLabel))
	errs := []error{err}
	for _, one := range all {
		ref := one.Labels[leaseLabel]
		if !p.names.tryLock(ref) {
			continue
		}
		err := p.Client.LeasesService().Delete(ctx, one, leases.SynchronousDelete)
		p.names.Unlock(ref)
		if err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// useless reports whether what a failed pull has brought should go at once: nobody wants it any more, the disk has no
// room for it, or it is not what its digest says, which the next pull would find again and again.
func useless(ctx context.Context, why error) bool {
	return ctx.Err() != nil || errors.Is(why, syscall.ENOSPC) || errors.Is(why, syscall.EDQUOT) ||
		errdefs.IsFailedPrecondition(why)
}
