// SPDX-License-Identifier: Apache-2.0

package dynamic

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/wherryproject/wherry/internal/api/onwrite"
	"github.com/wherryproject/wherry/internal/api/registry"
)

// onDemand is a plug-in that is made when there is a rule for it.
type onDemand struct {
	*Plugins
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

// subscribe has the plug-in made for the next request after this server has stored a rule.
func (p *onDemand) subscribe() {
	p.rules.OnWrite.Add(onwrite.Calls{Created: func(runtime.Object) { p.active.Store(true) }})
}

// has reports whether there is, or was, a rule.
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
	plugin, err := p.make(parts, p.config(p.name))
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

// watch has the plug-in made when another server on the same etcd stores its first rule. Once there is a rule, the
// plug-in watches for the others by itself.
func (p *onDemand) watch(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.rules.Follow(ctx, registry.First(func() {
		p.active.Store(true)
		cancel()
	}))
}
