// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	webhookconfig "k8s.io/apiserver/pkg/admission/plugin/webhook/config"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/util/webhook"

	"github.com/wherryproject/wherry/internal/api/kinds"
	"github.com/wherryproject/wherry/internal/api/onwrite"
	"github.com/wherryproject/wherry/internal/api/registry"
)

// dynamic are the plug-ins of admission whose rules are objects: webhooks and policies (EC-21). They are the library's;
// what is done here is to have none of them cost anything before it has a rule. A plug-in (its informers, its
// environment of CEL) is made for the first request after its first rule was stored, or with the server if there is a
// rule already, and stays. A request that finds it not ready waits for it, some seconds; if what its rules are cannot
// be read, the request is refused.
//
// As in any Kubernetes server, a rule beyond the first takes effect when the informer has heard of it: milliseconds
// after its creation was answered, for policies up to a second. So does a first rule that another server on the same
// etcd has stored.
type dynamic struct {
	plugins []*onDemand
	checks  *policyChecks
	context context.Context
	cancel  context.CancelFunc
	log     *slog.Logger
	config  admissionConfig
	others  sync.WaitGroup // who wait for the first rule from another server

	mu      sync.Mutex
	parts   *pluginParts // what plug-ins are made with; nil before the first
	connect func() (Connection, error)
}

// newDynamic prepares the plug-ins. Nothing is started.
func newDynamic(st registry.Stores, schemes *registry.Schemes, config admissionConfig, log *slog.Logger,
	connect func() (Connection, error)) (*dynamic, error) {
	if err := config.webhooks(); err != nil {
		return nil, err
	}
	d := &dynamic{log: log, config: config, connect: connect}
	d.context, d.cancel = context.WithCancel(context.Background())
	add := func(name, rules string, ops []admission.Operation, exempt []string,
		make func(*pluginParts, io.Reader) (admission.Interface, error)) {
		p := &onDemand{dynamic: d, name: name, rules: st[rules], ops: ops, exempt: exempt, make: make}
		p.hear()
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
	d.checks = newPolicyChecks(d, st[kinds.ValidatingPolicies], schemes, log)
	return d, nil
}

func (d *dynamic) mutatingPolicies() admission.Interface   { return mutatingOnDemand{d.plugins[0]} }
func (d *dynamic) mutatingWebhooks() admission.Interface   { return mutatingOnDemand{d.plugins[1]} }
func (d *dynamic) validatingPolicies() admission.Interface { return validatingOnDemand{d.plugins[2]} }
func (d *dynamic) validatingWebhooks() admission.Interface { return validatingOnDemand{d.plugins[3]} }

// start makes the plug-ins that have a rule already, and waits until they are ready. The server is not ready before.
func (d *dynamic) start(ctx context.Context) error {
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

// close ends what the plug-ins run; requests that need them are refused from then on or judged by what is known.
func (d *dynamic) close() {
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
func (d *dynamic) partsFor() (*pluginParts, error) {
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

// onDemand is a plug-in that is made when there is a rule for it.
type onDemand struct {
	*dynamic
	name   string
	rules  *registry.REST // without an object of this kind the plug-in has nothing to say
	ops    []admission.Operation
	exempt []string // kinds of admissionregistration.k8s.io that the plug-in is never asked about
	make   func(parts *pluginParts, config io.Reader) (admission.Interface, error)

	active atomic.Bool // there is a rule, or was one since the server started
	asked  atomic.Bool // the store has been asked for rules

	once   sync.Mutex
	plugin admission.Interface
}

// hear has the plug-in made for the next request after this server has stored a rule.
func (p *onDemand) hear() {
	p.rules.OnWrite.Add(onwrite.Calls{Created: func(runtime.Object) { p.active.Store(true) }})
}

// has says whether there is, or was, a rule.
func (p *onDemand) has(ctx context.Context) (bool, error) {
	if p.active.Load() || p.asked.Load() {
		return p.active.Load(), nil
	}
	p.once.Lock()
	defer p.once.Unlock()
	list, err := p.rules.List(p.rules.Within(ctx, ""), &metainternal.ListOptions{Limit: 1})
	if err != nil {
		return false, fmt.Errorf("read the %s: %w", p.rules.Kind.Plural, err)
	}
	if meta.LenList(list) > 0 {
		p.active.Store(true)
	}
	p.asked.Store(true)
	return p.active.Load(), nil
}

// get returns the plug-in, made if it is not yet.
func (p *onDemand) get() (admission.Interface, error) {
	p.once.Lock()
	defer p.once.Unlock()
	if p.plugin != nil {
		return p.plugin, nil
	}
	parts, err := p.partsFor()
	if err != nil {
		return nil, err
	}
	plugin, err := p.make(parts, p.config.reader(p.name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	if err := parts.initialize(plugin); err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	p.plugin = plugin
	p.log.Debug("made an admission plug-in, as there is a rule for it", "plugin", p.name)
	return plugin, nil
}

// forRequest returns the plug-in that has to be asked about a request, or nil.
func (p *onDemand) forRequest(ctx context.Context, a admission.Attributes) (admission.Interface, error) {
	if kind := a.GetKind(); kind.Group == admissionv1.GroupName && slices.Contains(p.exempt, kind.Kind) {
		return nil, nil
	}
	has, err := p.has(ctx)
	if err == nil && !has {
		return nil, nil
	}
	var plugin admission.Interface
	if err == nil {
		plugin, err = p.get()
	}
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("admission is not available, so the request is rejected: %w",
			err))
	}
	return plugin, nil
}

// Handles implements admission.Interface.
func (p *onDemand) Handles(op admission.Operation) bool { return slices.Contains(p.ops, op) }

type mutatingOnDemand struct{ *onDemand }

var _ admission.MutationInterface = mutatingOnDemand{}

// Admit implements admission.MutationInterface.
func (p mutatingOnDemand) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	plugin, err := p.forRequest(ctx, a)
	if err != nil || plugin == nil {
		return err
	}
	return plugin.(admission.MutationInterface).Admit(ctx, a, o)
}

type validatingOnDemand struct{ *onDemand }

var _ admission.ValidationInterface = validatingOnDemand{}

// Validate implements admission.ValidationInterface.
func (p validatingOnDemand) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	plugin, err := p.forRequest(ctx, a)
	if err != nil || plugin == nil {
		return err
	}
	return plugin.(admission.ValidationInterface).Validate(ctx, a, o)
}

// webhooks says what is wrong with the configuration of the webhook plug-ins, which they themselves would say at the
// first request.
func (c admissionConfig) webhooks() error {
	for _, name := range []string{mutatingwebhook.PluginName, validatingwebhook.PluginName} {
		fail := func(err error) error { return fmt.Errorf("configuration of admission plug-in %s: %w", name, err) }
		settings, err := webhookconfig.LoadConfig(c.reader(name))
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

// watch has the plug-in made when another server on the same etcd stores its first rule. Once there is a rule, the
// plug-in hears of the others by itself.
func (p *onDemand) watch(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.rules.Follow(ctx, registry.First(func() {
		p.active.Store(true)
		cancel()
	}))
}
