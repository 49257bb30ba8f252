// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"

	restful "github.com/emicklei/go-restful/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/spec3"
)

// document is one of version 3: of one group and version.
type document = spec3.OpenAPI

// kindsKey is the extension of a schema that says which kinds it is the schema of.
const kindsKey = "x-kubernetes-group-version-kind"

// group makes the document of version 3 of the routes of one group and version.
func (d *definitions) group(path string, ws *restful.WebService) (*document, error) {
	all := d.all()
	defer runtime.KeepAlive(all) // for the documents that are made meanwhile
	doc, err := builder3.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices([]*restful.WebService{ws}),
		d.forOne(*all))
	if err != nil {
		return nil, fmt.Errorf("make the OpenAPI v3 document of %s: %w", path, err)
	}
	if gv, ok := groupVersionAt(path); ok {
		narrow(doc, gv)
	}
	return doc, nil
}

// groupVersionAt is the group and version that is served at a path; false for other paths.
func groupVersionAt(path string) (schema.GroupVersion, bool) {
	switch parts := strings.Split(path, "/"); {
	case len(parts) == 2 && parts[0] == "api":
		return schema.GroupVersion{Version: parts[1]}, true
	case len(parts) == 3 && parts[0] == "apis":
		return schema.GroupVersion{Group: parts[1], Version: parts[2]}, true
	}
	return schema.GroupVersion{}, false
}

// narrow leaves the kinds that every group has (WatchEvent, DeleteOptions) only with this group, and with that without
// a name: a document is about one group, and each of these would name all others.
func narrow(doc *document, gv schema.GroupVersion) {
	if doc.Components == nil {
		return
	}
	for _, s := range doc.Components.Schemas {
		kinds, _ := s.Extensions[kindsKey].([]any)
		if len(kinds) < 2 || !everywhere(kinds[0]) {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(kinds), func(kind any) bool {
			k, _ := kind.(map[string]any)
			is := schema.GroupVersion{}
			is.Group, _ = k["group"].(string)
			is.Version, _ = k["version"].(string)
			return is != gv && is != schema.GroupVersion{Version: "v1"}
		})
		if len(left) == 0 {
			delete(s.Extensions, kindsKey)
			continue
		}
		s.Extensions[kindsKey] = left
	}
}

func everywhere(kind any) bool {
	k, _ := kind.(map[string]any)
	return k["kind"] == "WatchEvent" || k["kind"] == "DeleteOptions"
}

// lazy is a document that is made when its one reader first asks for it. The reader keeps the text; when it asks again,
// only to learn that nothing has changed, the text is written, and the document's parts are let go.
type lazy struct {
	path string
	make func() (*document, error)
	log  *slog.Logger

	mu  sync.Mutex
	doc *document
}

// Get implements cached.Value.
func (l *lazy) Get() (*document, string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.doc != nil {
		*l.doc = document{}
		return l.doc, l.path, nil
	}
	doc, err := l.make()
	if err != nil {
		l.log.Error("cannot make an API document", "err", err)
		return nil, "", err
	}
	l.doc, l.make = doc, nil
	return doc, l.path, nil
}
