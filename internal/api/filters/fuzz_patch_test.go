// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/kinds"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
)

// FuzzPatch: whatever patch of whatever kind a client sends, the library's handler and our rules apply it or refuse it, and never panic;
// what comes of it can be stored and read again, and is still the object that was patched. (Some patches that make no sense are
// answered with 500 by the library.) There is no server around them: one is slow, and what goes on in it beside drowns what an input does.
func FuzzPatch(f *testing.F) {
	how := []types.PatchType{types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType}
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // the library logs most refusals
	f.Cleanup(klog.ClearLogger)
	all := patchables(f)
	at := func(plural string) (n uint8) {
		for i := range all {
			if all[i].kind.Plural == plural {
				return uint8(i)
			}
		}
		f.Fatalf("there is no %s", plural)
		return 0
	}
	for kind, bodies := range [][]string{
		{`[{"op":"add","path":"/metadata/labels/a","value":"b"}]`, `[{"op":"copy","from":"/spec","path":"/spec/containers/0"}]`, `[{"op":"remove","path":"/spec/containers/-1"}]`,
			`[{"op":"move","from":"/metadata","path":"/metadata/labels"}]`, `[{"op":"test","path":"","value":null}]`, `[null]`, `[{"op":"replace","path":"/metadata","value":[]}]`},
		{`{"metadata":null}`, `{"spec":{"containers":null}}`, `{"metadata":{"labels":{"a":null}}}`, `{"spec":[]}`, `null`, `[]`, `{"data":{"a":1}}`, `{"metadata":{"name":"q","uid":"v"}}`},
		{`{"spec":{"containers":[{"$patch":"delete","name":"c"}]}}`, `{"spec":{"$setElementOrder/containers":[{"name":"x"}],"containers":[{"name":"c","image":"i"}]}}`,
			`{"metadata":{"$retainKeys":["name"]}}`, `{"$patch":"replace"}`, `{"spec":{"containers":[{"$patch":5}]}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":[{}]}}`},
		{"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: x}]}\n", "apiVersion: v1\nkind: Pod\nmetadata: {name: p, managedFields: [{}]}\n",
			"a: &a [*a]", "kind: Pod", "apiVersion: v1\nkind: Pod\nspec: {containers: [{image: x}, {image: y}]}\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}\ndata: {a: b}\n"},
	} {
		for _, body := range bodies {
			for _, plural := range []string{"pods", "configmaps", "services", "nodes", "clusterroles"} {
				f.Add(uint8(kind), at(plural), false, []byte(body))
			}
			f.Add(uint8(kind), at("pods"), true, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, way, kind uint8, status bool, body []byte) {
		p := all[int(kind)%len(all)]
		rules := p.kind.Rules
		if status && p.kind.Status != nil {
			rules = *p.kind.Status
		}
		p.t, p.strategy = t, registry.NewStrategy(p.schemes, p.kind, rules)
		p.patch(how[int(way)%len(how)], body)
	})
}

// patchable is an object of a kind that takes patches. It is its own storage: nothing that is sent changes it.
type patchable struct {
	t        *testing.T
	schemes  *schemes.Schemes
	kind     *registry.Kind
	object   runtime.Object
	strategy registry.Strategy
	scope    handlers.RequestScope
}

var _ rest.Patcher = patchable{}

// ownKinds are those whose rules and types are in the table itself: of Kubernetes' own the bodies go through its code.
func ownKinds() []*registry.Kind {
	return slices.DeleteFunc(kinds.All(nil), func(k *registry.Kind) bool { return k.Foreign != nil })
}

// patchables has one of each kind.
func patchables(f *testing.F) (all []patchable) {
	s, err := schemes.New()
	if err != nil {
		f.Fatal(err)
	}
	config := genericapiserver.DefaultOpenAPIV3Config(schemes.Definitions, apiopenapi.NewDefinitionNamer(s.External))
	var names []string
	for name := range schemes.Definitions(func(string) (r spec.Ref) { return r }) {
		names = append(names, name)
	}
	models, err := builder3.BuildOpenAPIDefinitionsForResources(config, names...)
	if err != nil {
		f.Fatal(err)
	}
	converter, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		f.Fatal(err)
	}
	for _, k := range ownKinds() {
		p := patchable{schemes: s, kind: k, object: k.Object()}
		if k.Plural == "pods" {
			if p.object, _, err = s.Codecs.UniversalDeserializer().Decode([]byte(richPod), nil, p.object); err != nil {
				f.Fatal(err)
			}
		}
		o := p.object.(metav1.Object)
		o.SetName("p")
		if o.SetUID("u"); k.Namespaced {
			o.SetNamespace("n")
		}
		o.SetResourceVersion("1")
		s.Default(p.object)
		p.scope = p.scopeOf(f, converter)
		all = append(all, p)
	}
	return all
}

// scopeOf is what the library's installer makes for a resource.
func (p patchable) scopeOf(f *testing.F, converter managedfields.TypeConverter) handlers.RequestScope {
	s, gvk := p.schemes, p.kind.GV.WithKind(p.kind.Name)
	hub := schema.GroupVersion{Group: gvk.Group, Version: runtime.APIVersionInternal}
	var reset map[fieldpath.APIVersion]fieldpath.Filter
	if p.kind.Rules.Reset != nil {
		reset = fieldpath.NewExcludeFilterSetMap(registry.NewStrategy(s, p.kind, p.kind.Rules).GetResetFields())
	}
	manager, err := managedfields.NewDefaultFieldManager(converter, s, s, s, gvk, hub, "", reset)
	if err != nil {
		f.Fatalf("%s: %v", p.kind.Plural, err)
	}
	return handlers.RequestScope{
		Namer:      handlers.ContextBasedNaming{Namer: meta.NewAccessor(), ClusterScoped: !p.kind.Namespaced},
		Serializer: s.Codecs, ParameterCodec: s.Params, Creater: s, Convertor: s, Defaulter: s, Typer: s, UnsafeConvertor: s,
		Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer(), EquivalentResourceMapper: runtime.NewEquivalentResourceRegistry(),
		TableConvertor: registry.TableConvertor(p.kind), FieldManager: manager, Resource: p.kind.GV.WithResource(p.kind.Plural), Kind: gvk,
		MetaGroupVersion: metav1.SchemeGroupVersion, HubGroupVersion: hub, MaxRequestBodyBytes: 3 << 20,
	}
}

// patch sends a patch.
func (p patchable) patch(how types.PatchType, body []byte) {
	query := url.Values{}
	if how == types.ApplyYAMLPatchType {
		query.Set("fieldManager", "fuzz")
	}
	info := &request.RequestInfo{IsResourceRequest: true, Verb: "patch", APIGroup: p.kind.GV.Group, APIVersion: p.kind.GV.Version, Resource: p.kind.Plural, Name: "p"}
	if p.kind.Namespaced {
		info.Namespace = "n"
	}
	ctx := request.WithUser(request.WithNamespace(request.WithRequestInfo(audit.WithAuditContext(context.Background()), info), info.Namespace), &user.DefaultInfo{Name: "fuzz"})
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, "/?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", string(how))
	answer := httptest.NewRecorder()
	withWholePatches(handlers.PatchResource(p, &p.scope, nil, []string{string(how)}), p.schemes.Codecs, p.scope.MaxRequestBodyBytes).ServeHTTP(answer, req)
	if text := answer.Body.String(); strings.Contains(text, "panic") || answer.Code == http.StatusOK && !strings.Contains(text, `"name":"p"`) {
		p.t.Errorf("%s of %s: %d %s", how, p.kind.Plural, answer.Code, text)
	}
}

// New implements rest.Updater.
func (p patchable) New() runtime.Object { return p.kind.Object() }

// Get implements rest.Getter.
func (p patchable) Get(context.Context, string, *metav1.GetOptions) (runtime.Object, error) {
	return p.object.DeepCopyObject(), nil
}

// Update implements rest.Updater as the library's storage does.
func (p patchable) Update(ctx context.Context, _ string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, validate rest.ValidateObjectUpdateFunc,
	_ bool, _ *metav1.UpdateOptions) (runtime.Object, bool, error) {
	old := p.object.DeepCopyObject()
	obj, err := info.UpdatedObject(ctx, old)
	if err != nil {
		return nil, false, err
	}
	o := obj.(metav1.Object)
	switch o.GetResourceVersion() {
	case "":
		o.SetResourceVersion("1")
	case "1":
	default:
		return nil, false, apierrors.NewConflict(p.kind.Resource(), "p", errors.New("another version"))
	}
	if err := rest.BeforeUpdate(p.strategy, ctx, obj, old); err != nil {
		return nil, false, err
	}
	if validate != nil {
		if err := validate(ctx, obj, old); err != nil {
			return nil, false, err
		}
	}
	if o.GetName() != "p" || o.GetUID() != "u" {
		p.t.Errorf("%s: it is now %s with UID %s", p.kind.Plural, o.GetName(), o.GetUID())
	}
	text, err := runtime.Encode(p.kind.StorageCodec(p.schemes), obj)
	if err != nil {
		return nil, false, err // too large, or what protobuf cannot hold
	}
	if _, err := runtime.Decode(p.kind.StorageCodec(p.schemes), text); err != nil {
		p.t.Errorf("%s: what was stored cannot be read: %v", p.kind.Plural, err)
	}
	return obj, false, nil
}

// RS-05: a patch that says not what it tests for is refused where the library would panic; nothing else is.
func TestPatchesWithoutValue(t *testing.T) {
	for patch, want := range map[string]bool{
		`[{"op":"test","path":""}]`: true, `[{"op":"add","path":"/a","value":1},{"op":"test","path":"","x":1}]`: true, `[{"path":"","op":"te\u0073t"}]`: true,
		`[{"op":"test","path":"","value":null}]`: false, `[{"op":"test","path":"/a"}]`: false, `[{"op":"test"}]`: false, `[{"op":"test","path":null}]`: false,
		`[null]`: false, `[]`: false, `{`: false, `[{"op":"remove","path":""}]`: false,
	} {
		if got := lacksValue([]byte(patch)); got != want {
			t.Errorf("%s: %v", patch, got)
		}
	}
	all := strings.Repeat("a", 100)
	req := httptest.NewRequest(http.MethodPatch, "/", strings.NewReader(all))
	req.Header.Set("Content-Type", "application/json-patch+json; charset=utf-8")
	withWholePatches(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		if text, err := io.ReadAll(req.Body); err != nil || string(text) != all {
			t.Errorf("%q, %v", text, err)
		}
	}), nil, 10).ServeHTTP(httptest.NewRecorder(), req)
}
