// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// kind is one row of the table of kinds: everything the server needs to know to serve a resource.
type kind struct {
	gv         schema.GroupVersion // served and stored version
	plural     string
	singular   string
	name       string // the Go and API name, e.g. Pod
	short      []string
	categories []string
	namespaced bool

	object func() runtime.Object
	list   func() runtime.Object

	rules  rules
	status *rules // rules of the status subresource; nil: there is none

	// fields are what field selectors may name besides metadata.name and metadata.namespace.
	fields func(runtime.Object) fields.Set
	// ttl is how long an object lives, in seconds; 0: until it is deleted.
	ttl uint64
	// returnDeleted makes a delete answer with the object instead of a Status, as Kubernetes does for some kinds.
	returnDeleted bool
}

func (k *kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.gv.Group, Resource: k.plural}
}

// rules are the pure part of a kind: what the server sets, what it refuses. All of them may be nil.
type rules struct {
	// drop takes away what must not be stored because its feature is off, and says so; old is nil for a new object.
	drop           func(obj, old runtime.Object) []string
	prepareCreate  func(obj runtime.Object)
	validate       func(obj runtime.Object) field.ErrorList
	prepareUpdate  func(obj, old runtime.Object)
	validateUpdate func(obj, old runtime.Object) field.ErrorList
	// grace decides whether a deletion waits, and sets options.GracePeriodSeconds when it does.
	grace func(obj runtime.Object, options *metav1.DeleteOptions) bool
	// warn says what is valid but not what a person means; old is nil for a new object.
	warn func(obj, old runtime.Object) []string

	createOnUpdate bool // a PUT of an object that is not there creates it
	mustHaveRV     bool // an update must name the resource version it is based on
	reset          *fieldpath.Set
}

// typed writes rules in terms of the Go type.
type typed[T runtime.Object] struct {
	drop           func(obj, old T) []string // old is the zero T for a new object
	prepareCreate  func(obj T)
	validate       func(obj T) field.ErrorList
	prepareUpdate  func(obj, old T)
	validateUpdate func(obj, old T) field.ErrorList
	grace          func(obj T, options *metav1.DeleteOptions) bool
	warn           func(obj, old T) []string // old is the zero T for a new object
	createOnUpdate bool
	mustHaveRV     bool
	reset          *fieldpath.Set
}

func (t typed[T]) rules() rules {
	r := rules{createOnUpdate: t.createOnUpdate, mustHaveRV: t.mustHaveRV, reset: t.reset}
	if t.drop != nil {
		r.drop = func(obj, old runtime.Object) []string {
			before, _ := old.(T)
			return t.drop(obj.(T), before)
		}
	}
	if t.prepareCreate != nil {
		r.prepareCreate = func(obj runtime.Object) { t.prepareCreate(obj.(T)) }
	}
	if t.validate != nil {
		r.validate = func(obj runtime.Object) field.ErrorList { return t.validate(obj.(T)) }
	}
	if t.prepareUpdate != nil {
		r.prepareUpdate = func(obj, old runtime.Object) { t.prepareUpdate(obj.(T), old.(T)) }
	}
	if t.validateUpdate != nil {
		r.validateUpdate = func(obj, old runtime.Object) field.ErrorList { return t.validateUpdate(obj.(T), old.(T)) }
	}
	if t.grace != nil {
		r.grace = func(obj runtime.Object, o *metav1.DeleteOptions) bool { return t.grace(obj.(T), o) }
	}
	if t.warn != nil {
		r.warn = func(obj, old runtime.Object) []string {
			before, _ := old.(T)
			return t.warn(obj.(T), before)
		}
	}
	return r
}

// strategy is the library's view of a kind's rules.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	rules      rules
	namespaced bool
	version    fieldpath.APIVersion
}

var (
	_ rest.RESTCreateStrategy         = strategy{}
	_ rest.RESTUpdateStrategy         = strategy{}
	_ rest.RESTGracefulDeleteStrategy = strategy{}
	_ rest.ResetFieldsStrategy        = strategy{}
)

func newStrategy(typer runtime.ObjectTyper, k *kind, r rules) strategy {
	return strategy{
		ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, rules: r,
		namespaced: k.namespaced, version: fieldpath.APIVersion(k.gv.String()),
	}
}

// NamespaceScoped implements the library's strategies.
func (s strategy) NamespaceScoped() bool { return s.namespaced }

// PrepareForCreate implements rest.RESTCreateStrategy.
func (s strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.dropFrom(ctx, obj, nil)
	if s.rules.prepareCreate != nil {
		s.rules.prepareCreate(obj)
	}
}

// dropFrom drops what must not be stored; whoever wrote it is warned.
func (s strategy) dropFrom(ctx context.Context, obj, old runtime.Object) {
	if s.rules.drop == nil {
		return
	}
	for _, said := range s.rules.drop(obj, old) {
		warning.AddWarning(ctx, "", said)
	}
}

// Validate implements rest.RESTCreateStrategy.
func (s strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	if s.rules.validate == nil {
		return nil
	}
	return s.rules.validate(obj)
}

// WarningsOnCreate implements rest.RESTCreateStrategy.
func (s strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return s.warnings(obj, nil)
}

func (s strategy) warnings(obj, old runtime.Object) []string {
	if s.rules.warn == nil {
		return nil
	}
	return s.rules.warn(obj, old)
}

// Canonicalize implements the library's strategies; the stored form is what validation saw.
func (s strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate implements rest.RESTUpdateStrategy.
func (s strategy) AllowCreateOnUpdate(context.Context) bool { return s.rules.createOnUpdate }

// AllowUnconditionalUpdate implements rest.RESTUpdateStrategy.
func (s strategy) AllowUnconditionalUpdate(context.Context) bool { return !s.rules.mustHaveRV }

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (s strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s.dropFrom(ctx, obj, old)
	if s.rules.prepareUpdate != nil {
		s.rules.prepareUpdate(obj, old)
	}
}

// ValidateUpdate implements rest.RESTUpdateStrategy.
func (s strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	if s.rules.validateUpdate == nil {
		return nil
	}
	return s.rules.validateUpdate(obj, old)
}

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (s strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return s.warnings(obj, old)
}

// CheckGracefulDelete implements rest.RESTGracefulDeleteStrategy.
func (s strategy) CheckGracefulDelete(_ context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	return s.rules.grace != nil && s.rules.grace(obj, options)
}

// GetResetFields implements rest.ResetFieldsStrategy: fields a write through this strategy cannot own.
func (s strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	if s.rules.reset == nil {
		return nil
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{s.version: s.rules.reset}
}
