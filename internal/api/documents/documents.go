// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	restful "github.com/emicklei/go-restful/v3"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Documents are the OpenAPI documents of a server.
type Documents struct {
	// V2 serves /openapi/v2; V3 serves /openapi/v3, and a document for each group and version below it.
	V2 *handler.OpenAPIService
	V3 *handler3.OpenAPIService
	// Static is what V2 has of the server itself. It is empty until somebody asks for V2; nobody else may read it.
	Static *spec.Swagger
}

// Config says what the documents are made of.
type Config struct {
	Routes *restful.Container // complete: what is added later is in no document
	V2     *common.Config
	V3     *common.OpenAPIV3Config
	Log    *slog.Logger
}

// Serve gives the paths of all documents to mux.
func Serve(c Config, mux common.PathHandlerByGroupVersion) (*Documents, error) {
	d := &Documents{Static: &spec.Swagger{}, V3: handler3.NewOpenAPIService()}
	d.V2 = handler.NewOpenAPIService(d.Static)
	made := sync.OnceValue(func() error { return c.fill(d.Static) })
	d.V2.RegisterOpenAPIVersionedService("/openapi/v2", before{mux, made, c.Log})

	parts := &definitions{config: c.V3}
	for _, ws := range c.Routes.RegisteredWebServices() {
		path := strings.TrimPrefix(ws.RootPath(), "/")
		d.V3.UpdateGroupVersionLazy(path, &lazy{path: path, log: c.Log, make: func() (*document, error) {
			return parts.group(path, ws)
		}})
	}
	if err := d.V3.RegisterOpenAPIV3VersionedService("/openapi/v3", mux); err != nil {
		return nil, fmt.Errorf("serve OpenAPI v3: %w", err)
	}
	return d, nil
}

// fill makes the document of version 2.
func (c Config) fill(static *spec.Swagger) error {
	made, err := builder.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices(c.Routes.RegisteredWebServices()),
		c.V2)
	if err != nil {
		return fmt.Errorf("make OpenAPI v2: %w", err)
	}
	made.Definitions = handler.PruneDefaults(made.Definitions)
	*static = *made
	return nil
}

// before is a mux whose handlers have something be made before the first request.
type before struct {
	common.PathHandler
	made func() error
	log  *slog.Logger
}

// Handle implements common.PathHandler.
func (b before) Handle(path string, next http.Handler) {
	b.PathHandler.Handle(path, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if err := b.made(); err != nil {
			b.log.Error("cannot make an API document", "path", path, "err", err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(w, req)
	}))
}
