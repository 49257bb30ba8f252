// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"

	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
)

// LibraryDocuments are the OpenAPI documents as the library makes them, of the same routes.
func (s *Server) LibraryDocuments() http.Handler {
	m := mux.NewPathRecorderMux("library")
	theirs := routes.OpenAPI{Config: s.served.openAPI.V2, V3Config: s.served.openAPI.V3}
	theirs.InstallV2(s.served.generic.Handler.GoRestfulContainer, m)
	theirs.InstallV3(s.served.generic.Handler.GoRestfulContainer, m)
	return m
}

// DocumentMade reports whether the server has made its OpenAPI document of version 2.
func (s *Server) DocumentMade() bool { return s.served.generic.StaticOpenAPISpec.Paths != nil }
