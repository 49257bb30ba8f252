// SPDX-License-Identifier: Apache-2.0

package dynamic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	webhookconfig "k8s.io/apiserver/pkg/admission/plugin/webhook/config"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/util/webhook"

	"github.com/wherryproject/wherry/internal/api/kinds"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
)

// Config is the configuration of a plug-in by its name, nil if it has none.
type Config func(plugin string) io.Reader

// Plugins are the plug-ins of admission whose rules are objects: webhooks and policies (EC-21). They are the library's;
// what is done here is to have none of them cost anything before it has a rule. A plug-in (its informers, its
// environment of CEL) is made for the first request after its first rule was stored, or with the server if there is a
// rule already, and stays. A request that finds it not ready waits for it, some seconds; if what its rules are cannot
// be read, the request is refused.
//
// As in any Kubernetes server, a rule beyond the first takes effect when the informer has received it: milliseconds
// after its creation was answered, for policies up to a second. So does a first rule that another server on the same
// etcd has stored.
type Plugins struct {
	stores  registry.Stores
	plugins []*onDemand
	checks  *typeChecks
	context context.Context
	cancel  context.CancelFunc
	log     *slog.Logger
	config  Config
	others  sync.WaitGroup // who wait for the first rule from another server

	mu      sync.Mutex
	parts   *pluginParts // what plug-ins are made with; nil before the first
	connect func() (Connection, error)
}

// New prepares the plug-ins. Nothing is started. What is wrong with their configuration is an error for the user.
func New(st registry.Stores, types *schemes.Schemes, config Config, log *slog.Logger,
	connect func() (Connection, error)) (*Plugins, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	d := &Plugins{stores: st, log: log, config: config, connect: connect}
	d.context, d.cancel = context.WithCancel(context.Background())
	add := func(name, rules string, ops []admission.Operation, exempt []string,
		make func(*pluginParts, io.Reader) (admission.Interface, error)) {
		p := &onDemand{Plugins: d, name: name, rules: st[rules], ops: ops, exempt: exempt, make: make}
		p.subscribe()
		d.plugins = append(d.plugins, p)
	}
	all := []admission.Operation{admission.Create, admission.Update, admission.Delete, admission.Connect}
	policies := []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy",
		"ValidatingAdmissionPolicyBinding"}
	// Nobody could mend a webhook that refuses to be mended. Policies are there for the configurations of webhooks too.
	everything := append(slices.Clone(policies), "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
	add(mutatingpolicy.PluginName, "mutatingadmissionpolicybindings",
		[]admission.Operation{admission.Create, admission.Update, admission.Connect}, policies,
		func(parts *pluginParts, c io.Reader) (admission.Interface, error) {
			// The plug-in reads the schemas of all kinds beside its start, and cannot be asked whether it has. It has
			// before it is ready if they are made by then.
			if _, err := parts.client.Discovery().OpenAPIV3().Paths(); err != nil {
				return nil, fmt.Errorf("read the schemas: %w", err)
			}
			return mutatingpolicy.NewPlugin(c)
		})
	add(mutatingwebhook.PluginName, "mutatingwebhookconfigurations", all, everything,
		func(_ *pluginParts, c io.Reader) (admission.Interface, error) {
			return mutatingwebhook.NewMutatingWebhook(c)
		})
	add(validatingpolicy.PluginName, "validatingadmissionpolicybindings", all, policies,
		func(_ *pluginParts, c io.Reader) (admission.Interface, error) { return validatingpolicy.NewPlugin(c) })
	add(validatingwebhook.PluginName, "validatingwebhookconfigurations", all, everything,
		func(_ *pluginParts, c io.Reader) (admission.Interface, error) {
			return validatingwebhook.NewValidatingAdmissionWebhook(c)
		})
	d.checks = newTypeChecks(d, st[kinds.ValidatingPolicies], types, log)
	return d, nil
}

// MutatingPolicies, and the next three, are the plug-ins, for the list of all.
func (d *Plugins) MutatingPolicies() admission.Interface { return mutatingOnDemand{d.plugins[0]} }

// MutatingWebhooks asks webhooks that change what is asked for.
func (d *Plugins) MutatingWebhooks() admission.Interface { return mutatingOnDemand{d.plugins[1]} }

// ValidatingPolicies asks policies that let in or refuse.
func (d *Plugins) ValidatingPolicies() admission.Interface { return validatingOnDemand{d.plugins[2]} }

// ValidatingWebhooks asks webhooks that let in or refuse.
func (d *Plugins) ValidatingWebhooks() admission.Interface { return validatingOnDemand{d.plugins[3]} }

// PolicyParams lets nobody have a policy read what he or she may not read; may decides about that.
func (d *Plugins) PolicyParams(may func() authorizer.UnconditionalAuthorizer) admission.Interface {
	return policyParams{d, may}
}

// Start makes the plug-ins that have a rule already, and waits until they are ready. The server is not ready before.
func (d *Plugins) Start(ctx context.Context) error {
	if err := d.checks.start(ctx); err != nil {
		return err
	}
	for _, p := range d.plugins {
		has, err := p.has(ctx)
		if err != nil {
			return err
		}
		if !has {
			d.others.Go(func() { p.watch(d.context) })
			continue
		}
		plugin, err := p.get()
		if err != nil {
			return err
		}
		waits, ok := plugin.(interface{ WaitForReady() bool })
		for ok && !waits.WaitForReady() && ctx.Err() == nil {
			d.log.Warn("admission is not ready yet; requests that need it are rejected until it is", "plugin", p.name)
		}
	}
	return nil
}

// Stop ends the watches of plug-ins, which are not drained.
func (d *Plugins) Stop() { d.cancel() }

// Close ends what the plug-ins run; requests that need them are refused from then on or judged by what is known.
func (d *Plugins) Close() {
	d.cancel()
	d.others.Wait()
	d.checks.close()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.parts != nil {
		d.parts.informers.Shutdown()
	}
}

// partsFor returns what plug-ins are made with.
func (d *Plugins) partsFor() (*pluginParts, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.parts != nil {
		return d.parts, nil
	}
	to, err := d.connect()
	if err != nil {
		return nil, err
	}
	parts, err := newPluginParts(d.context, to)
	if err != nil {
		return nil, err
	}
	d.parts = parts
	return parts, nil
}

// check says what is wrong with the configuration of the webhook plug-ins, which they themselves would say at the
// first request.
func (c Config) check() error {
	for _, name := range []string{mutatingwebhook.PluginName, validatingwebhook.PluginName} {
		fail := func(err error) error { return fmt.Errorf("configuration of admission plug-in %s: %w", name, err) }
		settings, err := webhookconfig.LoadConfig(c(name))
		if err != nil {
			return fail(err)
		}
		if settings.StaticManifestsDir != "" {
			return fail(errors.New("webhooks from files (staticManifestsDir) are not supported: create them as API objects"))
		}
		if _, err := webhook.NewDefaultAuthenticationInfoResolver(settings.KubeConfigFile); err != nil {
			return fail(err)
		}
	}
	return nil
}

// questions are resources that are never stored: somebody asks who or whether. No webhook or policy is asked about
// them, so that none can lock everybody out.
func questions() []schema.GroupResource {
	of := func(gv schema.GroupVersion, resources ...string) (all []schema.GroupResource) {
		for _, r := range resources {
			all = append(all, gv.WithResource(r).GroupResource())
		}
		return all
	}
	return append(
		of(authenticationv1.SchemeGroupVersion, "tokenreviews", "selfsubjectreviews"),
		of(authorizationv1.SchemeGroupVersion, "subjectaccessreviews", "localsubjectaccessreviews",
			"selfsubjectaccessreviews", "selfsubjectrulesreviews")...)
}
