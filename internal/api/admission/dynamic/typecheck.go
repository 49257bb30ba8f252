// SPDX-License-Identifier: Apache-2.0

package dynamic

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherryproject/wherry/internal/api/onwrite"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
)

// typeChecks write into the status of every ValidatingAdmissionPolicy what is wrong with its expressions for the
// kinds it is about: fields that do not exist, types that do not fit. Such a policy is accepted, as it may be meant for
// more kinds than the server has; its author is told so. Nothing runs before there is a policy.
// https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/#type-checking
type typeChecks struct {
	rules   *registry.REST
	plugins *Plugins
	schemes *schemes.Schemes
	log     *slog.Logger

	once  sync.Once
	done  sync.WaitGroup
	queue workqueue.TypedRateLimitingInterface[string] // names of policies
}

const (
	firstCheck = 50 * time.Millisecond // between tries of what fails, growing
	lastCheck  = time.Minute
)

func newTypeChecks(d *Plugins, r *registry.REST, types *schemes.Schemes, log *slog.Logger) *typeChecks {
	c := &typeChecks{rules: r, plugins: d, schemes: types, log: log,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstCheck, lastCheck))}
	r.OnWrite.Add(onwrite.Calls{Created: func(runtime.Object) { c.run() }})
	return c
}

// start runs the checks if there is a policy already.
func (c *typeChecks) start(ctx context.Context) error {
	list, err := c.rules.List(c.rules.Within(ctx, ""), &metainternal.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("read the %s: %w", c.rules.Kind.Plural, err)
	}
	if meta.LenList(list) > 0 {
		c.run()
	}
	return nil
}

// run starts the checks, once.
func (c *typeChecks) run() {
	c.once.Do(func() {
		if c.plugins.context.Err() != nil {
			return
		}
		c.done.Go(func() {
			if err := c.follow(); err != nil {
				c.log.Error("cannot type check the expressions of policies", "err", err)
			}
		})
	})
}

// close waits for the check that is under way; the context of the plug-ins is done.
func (c *typeChecks) close() {
	c.once.Do(func() {}) // not from now on
	c.queue.ShutDown()
	c.done.Wait()
}

func (c *typeChecks) follow() error {
	parts, err := c.plugins.partsFor()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(c.plugins.context, c.queue.ShutDown)
	defer stop()
	policies := parts.informers.Admissionregistration().V1().ValidatingAdmissionPolicies()
	add := func(obj any) {
		if p, ok := obj.(*admissionv1.ValidatingAdmissionPolicy); ok && p.Status.ObservedGeneration < p.Generation {
			c.queue.Add(p.Name)
		}
	}
	_, err = policies.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add,
		UpdateFunc: func(_, now any) { add(now) }})
	if err != nil {
		return err
	}
	parts.informers.Start(c.plugins.context.Done())
	for {
		name, ended := c.queue.Get()
		if ended {
			return nil
		}
		policy, err := policies.Lister().Get(name)
		if err == nil {
			err = c.check(parts, policy)
		}
		switch {
		case err == nil || apierrors.IsNotFound(err):
			c.queue.Forget(name)
		case c.plugins.context.Err() == nil:
			if !apierrors.IsConflict(err) {
				c.log.Warn("cannot write a policy's type check, will try again", "policy", name, "err", err)
			}
			c.queue.AddRateLimited(name)
		}
		c.queue.Done(name)
	}
}

// check checks a policy and writes its status. The schemas are made anew each time: they take many megabytes and are
// needed seldom.
func (c *typeChecks) check(parts *pluginParts, policy *admissionv1.ValidatingAdmissionPolicy) error {
	checker := validating.TypeChecker{RestMapper: parts.mapper,
		SchemaResolver: resolver.NewDefinitionsSchemaResolver(schemes.Definitions, c.schemes.External).
			Combine(&resolver.ClientDiscoveryResolver{Discovery: parts.client.Discovery()})}
	policy = policy.DeepCopy()
	policy.Status.ObservedGeneration = policy.Generation
	policy.Status.TypeChecking = &admissionv1.TypeChecking{ExpressionWarnings: checker.Check(policy)}
	_, err := parts.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().UpdateStatus(c.plugins.context,
		policy, metav1.UpdateOptions{})
	return err
}
