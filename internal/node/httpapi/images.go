// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/debug/wire"
)

// imageNames is the answer of /imageNames: the tags and digests, as registry/name:tag and registry/name@digest, that
// the node's runtime knows an image by. An image that is not here has none.
type imageNames struct {
	Names []string `json:"names"`
}

// imageNames answers with the names of an image that is given by its ID, so that policies can judge it.
func (s *Server) imageNames(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get(wire.ParamImage)
	if id == "" {
		s.refuse(w, r,
			fail(http.StatusBadRequest,
				"the query parameter image is missing: the id of an image, such as sha256:5905453c494f"))
		return
	}
	got, err := s.config.CRI.Images.ImageStatus(r.Context(),
		&runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: id}})
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.writeJSON(w, r, imageNames{Names: append(append([]string{}, got.GetImage().GetRepoTags()...),
		got.GetImage().GetRepoDigests()...)})
}
