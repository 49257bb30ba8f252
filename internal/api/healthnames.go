// SPDX-License-Identifier: Apache-2.0

package api

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
	hookBootstrap   = "bootstrap"
	hookAggregation = "aggregation"
	hookAdmission   = "admission"
)

// standIns are names of kube-apiserver's health checks, by the hook whose end says the same here: monitoring, and
// Kubernetes' own tests, ask for checks by these names (/readyz/NAME, ?exclude=NAME).
func standIns() map[string][]string {
	const hook = "poststarthook/"
	return map[string][]string{
		hookBootstrap: {
			hook + "bootstrap-controller", hook + "start-system-namespaces-controller", hook + "rbac/bootstrap-roles",
			hook + "scheduling/bootstrap-system-priority-classes", hook + "start-service-ip-repair-controllers",
			hook + "start-cluster-authentication-info-controller", hook + "kube-apiserver-autoregistration",
			"autoregister-completion", hook + "storage-readiness",
		},
		hookAggregation: {
			hook + "start-kube-aggregator-informers", hook + "apiservice-registration-controller",
			hook + "apiservice-status-local-available-controller",
			hook + "apiservice-status-remote-available-controller", hook + "apiservice-openapi-controller",
			hook + "apiservice-discovery-controller",
		},
		hookAdmission: { // the informers are those of admission: there are no others outside of a kind's own
			hook + "start-apiserver-admission-initializer", hook + "generic-apiserver-start-informers", "informer-sync",
		},
	}
}

// addHook has do run once the server answers, and adds the checks that stand for it. The library would end the whole
// process for the error of a hook that was stopped meanwhile.
func addHook(c *genericapiserver.Config, name string, do func(context.Context) error) {
	done := new(atomic.Bool)
	c.AddPostStartHookOrDie(name, func(ctx genericapiserver.PostStartHookContext) error {
		err := do(ctx)
		if err == nil {
			done.Store(true)
		}
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
	for _, other := range standIns()[name] {
		c.AddHealthChecks(healthz.NamedCheck(other, func(*http.Request) error {
			if !done.Load() {
				return errors.New("not finished")
			}
			return nil
		}))
	}
}
