// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/wherryproject/wherry/internal/api/firsts"
	"github.com/wherryproject/wherry/internal/api/onwrite"
	"github.com/wherryproject/wherry/internal/api/schemes"
	"github.com/wherryproject/wherry/internal/features"
)

// Backend tells the library's stores where and how to keep objects.
type Backend struct {
	Schemes  *schemes.Schemes
	Features *features.Gates
	Config   storagebackend.Config
	Room     Room             // nil: the store is not ours
	Etcd     *clientv3.Client // of an etcd in this process; nil: config says where it is
	Firsts   *firsts.Board    // told of every write; may be nil
	// Rights decides about rights, for kinds whose rules ask; it is asked for with each question.
	Rights func() authorizer.UnconditionalAuthorizer
	// Namespace reads one, likewise.
	Namespace func(ctx context.Context, name string) (*corev1.Namespace, error)
}

// options answers for one kind. There is no watch cache: with the store in the same process a watch straight from etcd
// has no more latency than one through a cache, lists are exact, and no second copy of every object stays in memory.
func (b *Backend) options(k *Kind) generic.RESTOptions {
	c := b.Config
	c.Codec = k.StorageCodec(b.Schemes)
	c.EncodeVersioner = k.GV
	return generic.RESTOptions{
		StorageConfig:           c.ForResource(k.Resource()),
		Decorator:               b.OpenStorage,
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: 4,
		ResourcePrefix:          resourcePrefix(k),
	}
}

// resourcePrefix is the place below the server's prefix, as kube-apiserver lays it out: the plain plural.
func resourcePrefix(k *Kind) string {
	switch k.Plural {
	case "ingresses":
		return "ingress"
	case "replicationcontrollers":
		return "controllers"
	case "nodes":
		return "minions"
	case "services":
		return "services/specs"
	case "endpoints":
		return "services/endpoints"
	}
	return k.Plural
}

// StorageCodec is how objects of a kind are written to the store: protobuf, or JSON for our own groups.
func (k *Kind) StorageCodec(types *schemes.Schemes) runtime.Codec {
	var wire runtime.Serializer = protobuf.NewSerializer(types.Scheme, types.Scheme)
	if schemes.IsOwn(k.GV) {
		wire = json.NewSerializerWithOptions(json.DefaultMetaFactory, types.Scheme, types.Scheme,
			json.SerializerOptions{})
	}
	codec := types.Codecs.CodecForVersions(wire, types.Codecs.UniversalDeserializer(), k.GV,
		runtime.InternalGroupVersioner)
	if k.Foreign != nil {
		return limitedCodec{codec, k.Resource()}
	}
	return storageCodec{limitedCodec{codec, k.Resource()}}
}

// maxObjectBytes is the largest object that is stored: 1.5 MiB, as in any Kubernetes cluster with etcd's default limit.
const maxObjectBytes = 1536 * 1024

// Limited is a codec that refuses to write objects that are too large (1.5 MiB), before they travel to etcd.
func Limited(codec runtime.Codec, resource schema.GroupResource) runtime.Codec {
	return limitedCodec{codec, resource}
}

type limitedCodec struct {
	runtime.Codec
	resource schema.GroupResource
}

// Encode implements runtime.Encoder.
func (c limitedCodec) Encode(obj runtime.Object, w io.Writer) error {
	counted := &countingWriter{w: w}
	if err := c.Codec.Encode(obj, counted); err != nil {
		return err
	}
	if counted.n > maxObjectBytes {
		return tooLarge(c.resource)
	}
	return nil
}

// storageCodec drops kind and version from what it decodes: because the stored type is the hub type, the library's
// codec would leave them set, and lists would show them in every item.
type storageCodec struct{ limitedCodec }

type countingWriter struct {
	w io.Writer
	n int
}

// Write implements io.Writer.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += n
	return n, err
}

func tooLarge(resource schema.GroupResource) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the object (%s) exceeds the maximum size of 1.5 MiB: "+
		"make it smaller, for example by moving data into volumes or splitting it", resource))
}

// Decode implements runtime.Decoder.
func (c storageCodec) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := c.Codec.Decode(data, defaults, into)
	if err == nil {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj, gvk, err
}

// OpenStorage implements generic.StorageDecorator.
func (b *Backend) OpenStorage(config *storagebackend.ConfigForResource, prefix string,
	_ func(runtime.Object) (string, error), newFunc, newListFunc func() runtime.Object, _ storage.AttrFunc,
	_ storage.IndexerFuncs, _ *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	open := generic.NewRawStorage
	if b.Etcd != nil {
		open = b.openInside
	}
	s, destroy, err := open(config, newFunc, newListFunc, prefix)
	if err != nil {
		return nil, nil, err
	}
	out := etcdStorage{Interface: s, resource: config.GroupResource, firsts: b.Firsts}
	if b.Room != nil {
		out.guard = &guard{room: b.Room, codec: config.Codec}
	}
	return out, destroy, nil
}

// etcdStorage adds to the library's etcd storage: bookmarks from etcd's progress notifications for watches that ask for
// them, 410 for every watch from before a compaction, words a person understands when an object is too large or the
// store is full, and generated names in the audit log.
type etcdStorage struct {
	storage.Interface
	resource schema.GroupResource
	guard    *guard // nil: the store is not ours
	firsts   *firsts.Board
}

func (s etcdStorage) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	opts.ProgressNotify = opts.Predicate.AllowWatchBookmarks
	w, err := s.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	return explain(w), nil
}

func (s etcdStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if err := s.guard.create(ctx); err != nil {
		return err
	}
	err := s.Interface.Create(ctx, key, obj, out, ttl)
	if err == nil { // here rather than in onWrite: custom resources come this way too
		noteGeneratedName(ctx, obj)
		s.firsts.Wrote(s.resource, obj)
	}
	return s.explain(err)
}

func (s etcdStorage) GuaranteedUpdate(ctx context.Context, key string, into runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object) error {
	err := s.Interface.GuaranteedUpdate(ctx, key, into, ignoreNotFound, preconditions, s.guard.updating(ctx, update),
		cached)
	if err == nil {
		s.firsts.Wrote(s.resource, into)
	}
	return s.explain(err)
}

func (s etcdStorage) explain(err error) error {
	var e rpctypes.EtcdError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrRequestTooLarge), errors.As(err, &e) &&
		e.Error() == rpctypes.ErrRequestTooLarge.Error():
		return tooLarge(s.resource) // an etcd with a smaller limit than ours
	case errors.Is(err, rpctypes.ErrNoSpace), errors.As(err, &e) && e.Error() == rpctypes.ErrNoSpace.Error():
		return s.guard.refused()
	}
	return err
}

// REST is the storage of one kind as the API sees it.
type REST struct {
	*genericregistry.Store
	Kind    *Kind
	OnWrite *onwrite.Hooks
	Charger Charger  // nil where no quota counts the kind
	foreign *Foreign // nil: the rules are ours
}

// Charger charges what writes add to the quotas of a namespace.
type Charger interface {
	// Creating calls write when it is its turn in the namespace. What write stores is counted before the next turn
	// begins; write tells whether it has made a new object.
	Creating(ctx context.Context, namespace string, write func(context.Context) (bool, error)) error
	// Growing is Creating for an update that does not pass through admission as what it is: before it stores an object
	// it has Charge judge how the object changes.
	Growing(ctx context.Context, namespace string, update func(Charge) error) error
}

// Charge charges the quotas with the difference between the old object of the attributes and the new one, or refuses
// it.
type Charge func(context.Context, admission.Attributes) error

// Growing runs an update of an object in a namespace that has Charge judge how the object changes.
func (r *REST) Growing(ctx context.Context, namespace string, update func(Charge) error) error {
	if r.Charger == nil {
		return update(func(context.Context, admission.Attributes) error { return nil })
	}
	return r.Charger.Growing(ctx, namespace, update)
}

// Create implements rest.Creater.
func (r *REST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (made runtime.Object, err error) {
	if r.Charger == nil {
		return r.writes().Create(ctx, obj, validate, options)
	}
	err = r.Charger.Creating(ctx, request.NamespaceValue(ctx), func(ctx context.Context) (bool, error) {
		made, err = r.writes().Create(ctx, obj, validate, options)
		return err == nil, err
	})
	return made, err
}

// Update implements rest.Updater. A server-side apply may create, and so may a PUT of some kinds.
func (r *REST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, mayCreate bool,
	options *metav1.UpdateOptions) (obj runtime.Object, created bool, err error) {
	if r.Charger == nil {
		return r.writes().Update(ctx, name, info, create, update, mayCreate, options)
	}
	err = r.Charger.Creating(ctx, request.NamespaceValue(ctx), func(ctx context.Context) (bool, error) {
		obj, created, err = r.writes().Update(ctx, name, info, create, update, mayCreate, options)
		return created, err
	})
	return obj, created, err
}

// Delete implements rest.GracefulDeleter.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return r.writes().Delete(ctx, name, validate, options)
}

// DeleteCollection implements rest.CollectionDeleter.
func (r *REST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions,
	list *metainternal.ListOptions) (runtime.Object, error) {
	return r.writes().DeleteCollection(ctx, validate, options, list)
}

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return r.Kind.Short }

// Categories implements rest.CategoriesProvider.
func (r *REST) Categories() []string { return r.Kind.Categories }

func (b *Backend) open(k *Kind) (*REST, error) {
	if k.Foreign != nil {
		return b.openForeign(k)
	}
	strategy := NewStrategy(b.Schemes, k, k.Rules)
	store := &genericregistry.Store{
		NewFunc:                   k.Object,
		NewListFunc:               k.List,
		DefaultQualifiedResource:  k.Resource(),
		SingularQualifiedResource: schema.GroupResource{Group: k.GV.Group, Resource: k.Singular},
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		ResetFieldsStrategy:       strategy,
		ReturnDeletedObject:       k.ReturnDeleted,
		TableConvertor:            TableConvertor(k),
	}
	if k.TTL > 0 {
		store.TTLFunc = func(_ runtime.Object, existing uint64, update bool) (uint64, error) {
			if update && existing > 0 {
				return existing, nil
			}
			return k.TTL, nil
		}
	}
	attrs := k.Attrs()
	err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: b.options(k), AttrFunc: attrs})
	if err != nil {
		return nil, fmt.Errorf("storage of %s: %w", k.Plural, err)
	}
	return &REST{Store: store, Kind: k, OnWrite: onwrite.Of(store)}, nil
}

// Attrs tells selectors the labels and fields of an object.
func (k *Kind) Attrs() storage.AttrFunc {
	return func(obj runtime.Object) (labels.Set, fields.Set, error) {
		o, ok := obj.(metav1.Object)
		if !ok {
			return nil, nil, fmt.Errorf("%T is not an API object", obj)
		}
		set := fields.Set{}
		if k.Fields != nil {
			set = k.Fields(obj)
		}
		set["metadata.name"] = o.GetName()
		if k.Namespaced {
			set["metadata.namespace"] = o.GetNamespace()
		}
		return o.GetLabels(), set, nil
	}
}

// Sub is a subresource of the kind, written under its own rules.
func (r *REST) Sub(typer runtime.ObjectTyper, rules Rules) Subresource {
	return Subresource{Store: r.With(typer, rules), charger: r.Charger}
}

// With returns the same storage under other rules: how subresources write.
func (r *REST) With(typer runtime.ObjectTyper, rules Rules) *genericregistry.Store {
	s := *r.Store
	strategy := NewStrategy(typer, r.Kind, rules)
	s.CreateStrategy = strategy
	s.UpdateStrategy = strategy
	s.ResetFieldsStrategy = strategy
	return &s
}
