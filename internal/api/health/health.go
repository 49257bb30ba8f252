// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
)

// The hooks that run once the server answers, and that it is not ready without.
const (
	Bootstrap   = "bootstrap"   // makes what every cluster has
	Aggregation = "aggregation" // finds other API servers that are to answer here
	Admission   = "admission"   // makes the plug-ins that have rules already
)

// standIns are names of kube-apiserver's health checks, by the hook whose end says the same here: monitoring, and
// Kubernetes' own tests, ask for checks by these names (/readyz/NAME, ?exclude=NAME).
func standIns() map[string][]string {
	const post = "poststarthook/"
	return map[string][]string{
		Bootstrap: {
			post + "bootstrap-controller", post + "start-system-namespaces-controller", post + "rbac/bootstrap-roles",
			post + "scheduling/bootstrap-system-priority-classes", post + "start-service-ip-repair-controllers",
			post + "start-cluster-authentication-info-controller", post + "kube-apiserver-autoregistration",
			"autoregister-completion", post + "storage-readiness",
		},
		Aggregation: {
			post + "start-kube-aggregator-informers", post + "apiservice-registration-controller",
			post + "apiservice-status-local-available-controller",
			post + "apiservice-status-remote-available-controller", post + "apiservice-openapi-controller",
			post + "apiservice-discovery-controller",
		},
		Admission: { // the informers are those of admission: there are no others outside of a kind's own
			post + "start-apiserver-admission-initializer", post + "generic-apiserver-start-informers", informerSync,
		},
	}
}

// informerSync is the one of the names that says only whether a server is ready, at no other endpoint than /readyz: who
// asks whether it lives must not end it for what it waits for.
const informerSync = "informer-sync"

// AddHook has do run once the server answers, and adds the checks that stand for it.
func AddHook(c *genericapiserver.Config, name string, do func(context.Context) error) {
	run, checks := hook(name, do)
	c.AddPostStartHookOrDie(name, run)
	for _, check := range checks {
		if check.Name() == informerSync {
			c.AddReadyzChecks(check)
		} else {
			c.AddHealthChecks(check)
		}
	}
}

// hook is what runs do, and the checks that say ok when it is done. The library would end the whole process for the
// error of a hook that was stopped meanwhile.
func hook(name string, do func(context.Context) error) (run genericapiserver.PostStartHookFunc,
	checks []healthz.HealthChecker) {
	done := new(atomic.Bool)
	for _, other := range standIns()[name] {
		checks = append(checks, healthz.NamedCheck(other, func(*http.Request) error {
			if !done.Load() {
				return errors.New("not finished")
			}
			return nil
		}))
	}
	return func(ctx genericapiserver.PostStartHookContext) error {
		err := do(ctx)
		if err == nil {
			done.Store(true)
		}
		if ctx.Err() != nil {
			return nil
		}
		return err
	}, checks
}
