// SPDX-License-Identifier: Apache-2.0

package customresources

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

const (
	// lateTime is how long documents are waited for at most. What is not in one by then has another fault.
	lateTime = 5 * time.Second
	// lateLook is how often the documents are looked at meanwhile: the library tells nobody when it has changed them.
	lateLook = 5 * time.Millisecond
)

// lateCustom knows the custom resources that the documents (discovery, OpenAPI) may not show yet. The library's
// controllers write the documents after a watch has told them that a definition is Established: by then a client may
// have read the condition and asked for a document. So a definition is noted here before its condition is stored, and
// who asks for a document waits for what is noted.
type lateCustom struct {
	documents customDocuments
	log       *slog.Logger
	storage   generic.StorageDecorator // as every kind's

	mu   sync.Mutex
	late []*lateDefinition
}

// lateDefinition is what the documents are to show of one definition.
type lateDefinition struct {
	name, group, plural string
	versions            []string
	until               time.Time
	shown               map[document]bool
}

// document is one kind of document that shows custom resources.
type document string

const (
	discoveryDocument document = "discovery"
	openAPIv2Document document = "OpenAPI v2"
	openAPIv3Document document = "OpenAPI v3"
)

// documents in which a definition is waited for.
func allDocuments() []document {
	return []document{discoveryDocument, openAPIv2Document, openAPIv3Document}
}

// documentAt is the document that a path asks for; "" for none.
func documentAt(path string) document {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "apis" && len(parts) <= 3:
		return discoveryDocument
	case parts[0] == "openapi" && len(parts) == 2 && parts[1] == "v2":
		return openAPIv2Document
	case parts[0] == "openapi" && len(parts) >= 2 && parts[1] == "v3":
		return openAPIv3Document
	}
	return ""
}

// servedBy is what documents show of a definition; nil when they show nothing: it is not established, or going.
func servedBy(crd *apiextensions.CustomResourceDefinition) *lateDefinition {
	if !apiextensions.IsCRDConditionTrue(crd, apiextensions.Established) || crd.DeletionTimestamp != nil {
		return nil
	}
	d := &lateDefinition{name: crd.Name, group: crd.Spec.Group, plural: crd.Status.AcceptedNames.Plural,
		shown: map[document]bool{}}
	for _, v := range crd.Spec.Versions {
		if v.Served {
			d.versions = append(d.versions, v.Name)
		}
	}
	if len(d.versions) == 0 {
		return nil
	}
	return d
}

// news says what of after the documents do not show yet, where they show before.
func news(before, after *lateDefinition) bool {
	if after == nil {
		return false
	}
	return before == nil || before.plural != after.plural || !slices.Equal(before.versions, after.versions)
}

// found notes the definitions that are there when the server starts: it is ready before the library's controllers have
// written them into the documents.
func (l *lateCustom) found(crds listers.CustomResourceDefinitionLister) {
	all, err := crds.List(labels.Everything())
	if err != nil {
		return // a lister over memory has no errors
	}
	for _, crd := range all {
		internal := &apiextensions.CustomResourceDefinition{}
		// of a copy: the conversion may change what it is given
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
			crd.DeepCopy(), internal, nil); err != nil {
			l.log.Warn("a custom resource may not be in the API documents at once", "definition", crd.Name, "err", err)
			continue
		}
		if d := servedBy(internal); d != nil {
			l.note(d)
		}
	}
}

// note adds a definition that is about to be stored.
func (l *lateCustom) note(d *lateDefinition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.until = time.Now().Add(lateTime)
	l.late = append(l.late, d)
}

// drop forgets what ought to be shown of a definition: given, it was not stored after all; nil, all of that name,
// because it is gone.
func (l *lateCustom) drop(name string, d *lateDefinition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = slices.DeleteFunc(l.late, func(o *lateDefinition) bool { return o == d || d == nil && o.name == name })
}

// stored makes the definition the only one of its name: an earlier state of it is no longer to be shown.
func (l *lateCustom) stored(d *lateDefinition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = slices.DeleteFunc(l.late, func(o *lateDefinition) bool { return o != d && o.name == d.name })
}

// missing are the definitions that a document does not show; it looks only if there may be one.
func (l *lateCustom) missing(doc document, now time.Time) []*lateDefinition {
	var unseen []*lateDefinition
	l.mu.Lock()
	for _, d := range l.late {
		if !d.shown[doc] {
			unseen = append(unseen, d)
		}
	}
	l.mu.Unlock()
	if len(unseen) == 0 {
		return nil
	}
	found := l.documents.show(doc, unseen)

	l.mu.Lock()
	defer l.mu.Unlock()
	var missing []*lateDefinition
	for _, d := range unseen {
		switch {
		case found[d]:
			d.shown[doc] = true
		case now.After(d.until):
			d.shown[doc] = true
			l.log.Warn("a custom resource is not in the API documents yet", "definition", d.name, "document",
				string(doc))
		default:
			missing = append(missing, d)
		}
	}
	l.late = slices.DeleteFunc(l.late, func(d *lateDefinition) bool { return len(d.shown) == len(allDocuments()) })
	return missing
}

// await lets requests for documents wait until these show all that was established before.
func (l *lateCustom) await(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if doc := documentAt(req.URL.Path); doc != "" {
			l.wait(req.Context(), doc)
		}
		next.ServeHTTP(w, req)
	})
}

func (l *lateCustom) wait(ctx context.Context, doc document) {
	l.mu.Lock()
	idle := len(l.late) == 0
	l.mu.Unlock()
	if idle {
		return
	}
	tick := time.NewTicker(lateLook)
	defer tick.Stop()
	for len(l.missing(doc, time.Now())) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// open is the storage of definitions: it notes what is going to be shown.
func (l *lateCustom) open(config *storagebackend.ConfigForResource, prefix string,
	key func(runtime.Object) (string, error), newFunc, newListFunc func() runtime.Object, attrs storage.AttrFunc,
	trigger storage.IndexerFuncs, indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	s, destroy, err := l.storage(config, prefix, key, newFunc, newListFunc, attrs, trigger, indexers)
	return definitionStorage{s, l}, destroy, err
}

var _ generic.StorageDecorator = (&lateCustom{}).open

// definitionStorage is the storage of definitions. A definition is never made as established: that comes by an update.
type definitionStorage struct {
	storage.Interface
	late *lateCustom
}

func (s definitionStorage) GuaranteedUpdate(ctx context.Context, key string, into runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object) error {
	var noted *lateDefinition
	forget := func() {
		if noted != nil {
			s.late.drop(noted.name, noted)
			noted = nil
		}
	}
	err := s.Interface.GuaranteedUpdate(ctx, key, into, ignoreNotFound, preconditions,
		func(in runtime.Object, meta storage.ResponseMeta) (
			runtime.Object, *uint64, error,
		) {
			forget() // of the try before, which met another writer
			before, _ := in.(*apiextensions.CustomResourceDefinition)
			var was *lateDefinition
			if before != nil {
				was = servedBy(before)
			}
			out, ttl, err := update(in, meta)
			if after, ok := out.(*apiextensions.CustomResourceDefinition); ok && err == nil {
				if d := servedBy(after); news(was, d) {
					noted = d
					s.late.note(d)
				}
			}
			return out, ttl, err
		}, cached)
	switch {
	case err != nil:
		forget()
	case noted != nil:
		s.late.stored(noted)
	}
	return err
}

func (s definitionStorage) Delete(ctx context.Context, key string, out runtime.Object,
	preconditions *storage.Preconditions, validate storage.ValidateObjectFunc, cached runtime.Object,
	opts storage.DeleteOptions) error {
	err := s.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts)
	if crd, ok := out.(*apiextensions.CustomResourceDefinition); ok && err == nil {
		s.late.drop(crd.Name, nil)
	}
	return err
}
