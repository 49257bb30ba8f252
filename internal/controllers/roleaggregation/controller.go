// SPDX-License-Identifier: Apache-2.0

package roleaggregation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/controllers/loop"
)

// Controller writes the rules of aggregated roles.
type Controller struct {
	client kubernetes.Interface
	loop   *loop.Loop
	roles  rbaclisters.ClusterRoleLister
}

// New makes the controller. The caller starts the factory's informers.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, log *slog.Logger) *Controller {
	c := &Controller{client: client}
	c.loop = loop.New("roleaggregation", log, c.sync)
	roles := factory.Rbac().V1().ClusterRoles()
	c.roles = roles.Lister()
	// Any role may join, or have joined, any aggregated one, by labels old or new; there are few of those.
	c.loop.Watch(roles.Informer(), func(any) { c.loop.Add(all) })
	return c
}

// all stands for every aggregated role.
const all = "*"

// Run works until ctx is done. It is called once.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// sync writes all that differ, also when one cannot be written: rights that are taken away must go. A role that is made
// of another aggregated one comes again when that one is written.
func (c *Controller) sync(ctx context.Context, _ string) error {
	roles, err := c.roles.List(labels.Everything())
	if err != nil {
		return err
	}
	var errs []error
	for _, role := range roles {
		if role.AggregationRule == nil {
			continue
		}
		if err := c.write(ctx, role, roles); err != nil {
			errs = append(errs, fmt.Errorf("cluster role %s: %w", role.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (c *Controller) write(ctx context.Context, role *rbacv1.ClusterRole, roles []*rbacv1.ClusterRole) error {
	rules, err := rbac.Aggregate(role, roles)
	if err != nil || equality.Semantic.DeepEqual(rules, role.Rules) {
		return err
	}
	updated := role.DeepCopy()
	updated.Rules = rules
	_, err = c.client.RbacV1().ClusterRoles().Update(ctx, updated, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it changed; we shall hear of it
	}
	return err
}
