// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"log/slog"
	"net/netip"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/wherryproject/wherry/internal/api/admission/dynamic"
	"github.com/wherryproject/wherry/internal/api/admission/eventlimits"
	"github.com/wherryproject/wherry/internal/api/admission/noderestriction"
	"github.com/wherryproject/wherry/internal/api/admission/signers"
	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
)

// Control is the server's admission: every plug-in, in the order in which they are asked.
type Control struct {
	// Plugins asks the plug-ins. It is not embedded: what asks it looks for its further methods.
	Plugins  admission.Interface
	dynamic  *dynamic.Plugins
	policies *policies
}

// Host is what the plug-ins need of the server they belong to.
type Host struct {
	Stores    registry.Stores
	Schemes   *schemes.Schemes
	Audiences []string // whom tokens for the server are meant for
	Quotas    admission.Interface
	Locate    connect.NodeLocator
	Log       *slog.Logger
	// Unenforced says why network policies have no effect, empty if they have; nil: nobody enforces any.
	Unenforced func() string
	// Services is the network of services' addresses that the server was started with; the zero value: not known.
	Services netip.Prefix
	// Authorizer decides about rights. It and Connection are asked for when a request is there to be judged: the server
	// is complete then.
	Authorizer func() authorizer.UnconditionalAuthorizer
	Connection func() (dynamic.Connection, error)
}

// New makes the plug-ins. Nothing is started. What is wrong with their configuration is an error for the user.
func New(o Completed, h Host) (*Control, error) {
	d, err := dynamic.New(h.Stores, h.Schemes, o.config.Reader, h.Log, h.Connection)
	if err != nil {
		return nil, err
	}
	c := &Control{dynamic: d}
	if c.policies, err = newPolicies(h.Stores, h.Schemes, o.config, o.DefaultPodSecurity, h.Locate,
		h.Authorizer); err == nil {
		c.Plugins, err = chain(c.plugins(o, h))
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return c, nil
}

// plugins are in order: what sets fields comes before what judges them, and quotas, which charge, come last.
func (c *Control) plugins(o Completed, h Host) []admission.Interface {
	return []admission.Interface{
		&admit{namespace: h.Stores.Namespace, account: h.Stores.ServiceAccount, notReady: *o.NotReady,
			unreachable: *o.Unreachable},
		noderestriction.New(h.Stores, h.Audiences),
		topologyLabels{h.Stores["nodes"]},
		volumes{h.Stores["storageclasses"]},
		limitRanger{registry.NewRuled(h.Stores["limitranges"])},
		c.policies.priorities,
		network{h.Stores["ingressclasses"], h.Unenforced, h.Services},
		noEffect{},
		c.policies.runtimeClasses,
		c.dynamic.MutatingPolicies(),
		c.dynamic.MutatingWebhooks(),
		c.policies.secrets,
		c.policies.podSecurity,
		debugProfiles{h.Authorizer},
		externalIPs{c.policies.podSecurity, h.Authorizer},
		c.policies.images,
		signers.New(h.Authorizer),
		c.dynamic.PolicyParams(h.Authorizer),
		c.dynamic.ValidatingPolicies(),
		c.dynamic.ValidatingWebhooks(),
		eventlimits.NewRate(),
		eventlimits.Size{},
		longTimes{},
		podRoom{h.Stores},
		h.Quotas,
	}
}

// Start makes the plug-ins that have rules already, and waits until they are ready. The server is not ready before.
func (c *Control) Start(ctx context.Context) error { return c.dynamic.Start(ctx) }

// Run follows what other servers on the same etcd store, until ctx is done.
func (c *Control) Run(ctx context.Context) { c.policies.images.Watch(ctx) }

// Stop ends the watches of plug-ins, which are not drained.
func (c *Control) Stop() { c.dynamic.Stop() }

// Close ends what the plug-ins run; requests that need them are refused from then on or judged by what is known.
func (c *Control) Close() { c.dynamic.Close() }

// OpenNamespace reports whether a namespace lets every pod in because nobody has decided otherwise.
func (c *Control) OpenNamespace(ctx context.Context, namespace string) (bool, error) {
	return c.policies.podSecurity.open(ctx, namespace)
}
