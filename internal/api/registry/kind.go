// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Kind is one row of the table of kinds: everything the server needs to know to serve a resource.
type Kind struct {
	GV         schema.GroupVersion   // served and stored version
	Also       []schema.GroupVersion // further versions in which it is served
	Plural     string
	Singular   string
	Name       string // the Go and API name, e.g. Pod
	Short      []string
	Categories []string
	Namespaced bool

	// Foreign opens a kind whose rules are Kubernetes' own. Then all that follows is empty, and Short and Categories
	// are what Kubernetes says.
	Foreign func(generic.RESTOptionsGetter) (*Foreign, error)

	Object func() runtime.Object
	List   func() runtime.Object

	Rules  Rules
	Status *Rules // rules of the status subresource; nil: there is none

	// Fields are what field selectors may name besides metadata.name and metadata.namespace.
	Fields func(runtime.Object) fields.Set
	// TTL is how long an object lives, in seconds; 0: until it is deleted.
	TTL uint64
	// ReturnDeleted makes a delete answer with the object instead of a Status, as Kubernetes does for some kinds.
	ReturnDeleted bool
}

// Resource is what the kind is called in paths and errors.
func (k *Kind) Resource() schema.GroupResource {
	return schema.GroupResource{Group: k.GV.Group, Resource: k.Plural}
}

// Rules are the pure part of a kind: what the server sets, what it refuses. All of them may be nil.
type Rules struct {
	// Drop takes away what must not be stored because its feature is off, and says so; old is nil for a new object.
	Drop           func(obj, old runtime.Object) []string
	PrepareCreate  func(obj runtime.Object)
	Validate       func(obj runtime.Object) field.ErrorList
	PrepareUpdate  func(obj, old runtime.Object)
	ValidateUpdate func(obj, old runtime.Object) field.ErrorList
	// Grace decides whether a deletion waits, and sets options.GracePeriodSeconds when it does.
	Grace func(obj runtime.Object, options *metav1.DeleteOptions) bool
	// Warn says what is valid but not what a person means; old is nil for a new object.
	Warn func(obj, old runtime.Object) []string

	CreateOnUpdate bool // a PUT of an object that is not there creates it
	MustHaveRV     bool // an update must name the resource version it is based on
	Reset          *fieldpath.Set
}

// Typed writes rules in terms of the Go type.
type Typed[T runtime.Object] struct {
	Drop           func(obj, old T) []string // old is the zero T for a new object
	PrepareCreate  func(obj T)
	Validate       func(obj T) field.ErrorList
	PrepareUpdate  func(obj, old T)
	ValidateUpdate func(obj, old T) field.ErrorList
	Grace          func(obj T, options *metav1.DeleteOptions) bool
	Warn           func(obj, old T) []string // old is the zero T for a new object
	CreateOnUpdate bool
	MustHaveRV     bool
	Reset          *fieldpath.Set
}

// Rules are the same rules for any object.
func (t Typed[T]) Rules() Rules {
	r := Rules{CreateOnUpdate: t.CreateOnUpdate, MustHaveRV: t.MustHaveRV, Reset: t.Reset}
	if t.Drop != nil {
		r.Drop = func(obj, old runtime.Object) []string {
			before, _ := old.(T)
			return t.Drop(obj.(T), before)
		}
	}
	if t.PrepareCreate != nil {
		r.PrepareCreate = func(obj runtime.Object) { t.PrepareCreate(obj.(T)) }
	}
	if t.Validate != nil {
		r.Validate = func(obj runtime.Object) field.ErrorList { return t.Validate(obj.(T)) }
	}
	if t.PrepareUpdate != nil {
		r.PrepareUpdate = func(obj, old runtime.Object) { t.PrepareUpdate(obj.(T), old.(T)) }
	}
	if t.ValidateUpdate != nil {
		r.ValidateUpdate = func(obj, old runtime.Object) field.ErrorList { return t.ValidateUpdate(obj.(T), old.(T)) }
	}
	if t.Grace != nil {
		r.Grace = func(obj runtime.Object, o *metav1.DeleteOptions) bool { return t.Grace(obj.(T), o) }
	}
	if t.Warn != nil {
		r.Warn = func(obj, old runtime.Object) []string {
			before, _ := old.(T)
			return t.Warn(obj.(T), before)
		}
	}
	return r
}

// Strategy is the library's view of a kind's rules.
type Strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	rules      Rules
	namespaced bool
	version    fieldpath.APIVersion
}

var (
	_ rest.RESTCreateStrategy         = Strategy{}
	_ rest.RESTUpdateStrategy         = Strategy{}
	_ rest.RESTGracefulDeleteStrategy = Strategy{}
	_ rest.ResetFieldsStrategy        = Strategy{}
)

// NewStrategy makes the strategy of a kind, or of a subresource of it, from rules.
func NewStrategy(typer runtime.ObjectTyper, k *Kind, r Rules) Strategy {
	return Strategy{
		ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, rules: r,
		namespaced: k.Namespaced, version: fieldpath.APIVersion(k.GV.String()),
	}
}

// NamespaceScoped implements the library's strategies.
func (s Strategy) NamespaceScoped() bool { return s.namespaced }

// PrepareForCreate implements rest.RESTCreateStrategy.
func (s Strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.dropFrom(ctx, obj, nil)
	if s.rules.PrepareCreate != nil {
		s.rules.PrepareCreate(obj)
	}
}

// dropFrom drops what must not be stored; whoever wrote it is warned.
func (s Strategy) dropFrom(ctx context.Context, obj, old runtime.Object) {
	if s.rules.Drop == nil {
		return
	}
	for _, said := range s.rules.Drop(obj, old) {
		warning.AddWarning(ctx, "", said)
	}
}

// Validate implements rest.RESTCreateStrategy.
func (s Strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	if s.rules.Validate == nil {
		return nil
	}
	return s.rules.Validate(obj)
}

// WarningsOnCreate implements rest.RESTCreateStrategy.
func (s Strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return s.warnings(obj, nil)
}

func (s Strategy) warnings(obj, old runtime.Object) []string {
	if s.rules.Warn == nil {
		return nil
	}
	return s.rules.Warn(obj, old)
}

// Canonicalize implements the library's strategies; the stored form is what validation saw.
func (s Strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate implements rest.RESTUpdateStrategy.
func (s Strategy) AllowCreateOnUpdate(context.Context) bool { return s.rules.CreateOnUpdate }

// AllowUnconditionalUpdate implements rest.RESTUpdateStrategy.
func (s Strategy) AllowUnconditionalUpdate(context.Context) bool { return !s.rules.MustHaveRV }

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (s Strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s.dropFrom(ctx, obj, old)
	if s.rules.PrepareUpdate != nil {
		s.rules.PrepareUpdate(obj, old)
	}
}

// ValidateUpdate implements rest.RESTUpdateStrategy.
func (s Strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	if s.rules.ValidateUpdate == nil {
		return nil
	}
	return s.rules.ValidateUpdate(obj, old)
}

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (s Strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return s.warnings(obj, old)
}

// CheckGracefulDelete implements rest.RESTGracefulDeleteStrategy.
func (s Strategy) CheckGracefulDelete(_ context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	return s.rules.Grace != nil && s.rules.Grace(obj, options)
}

// GetResetFields implements rest.ResetFieldsStrategy: fields a write through this strategy cannot own.
func (s Strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	if s.rules.Reset == nil {
		return nil
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{s.version: s.rules.Reset}
}
