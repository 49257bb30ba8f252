// SPDX-License-Identifier: Apache-2.0

package hostapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/imagename"
)

// inspect answers with all that is known of an image.
func (s *Server) inspect(r *http.Request) (any, error) {
	ref := r.FormValue("ref")
	got,
		err := s.Images.ImageStatus(r.Context(),
		&runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: ref}, Verbose: true})
	if err != nil {
		return nil, err
	}
	if got.Image == nil {
		return nil, fmt.Errorf("%s: %w", ref, errNotFound)
	}
	image := asImage(got.Image)
	var more struct {
		ImageSpec json.RawMessage `json:"imageSpec"`
	}
	// What a runtime adds is its own affair: without it the rest is returned.
	if err := json.Unmarshal([]byte(got.Info["info"]), &more); err == nil {
		image.Spec = more.ImageSpec
	}
	return image, nil
}

// tag gives an image a further name.
func (s *Server) tag(r *http.Request) (any, error) {
	if s.Archives == nil {
		return nil,
			errors.New("an external container runtime cannot name images for wherry; use that runtime's own tool (containerd: ctr -n k8s.io images tag)")
	}
	ref, name := r.FormValue("ref"), r.FormValue("as")
	image, err := s.find(r.Context(), ref)
	if err != nil {
		return nil, err
	}
	if imagename.BuiltIn(name) {
		return nil, fmt.Errorf("%s is the name of an image built into wherry: choose another", name)
	}
	full, err := s.Archives.Tag(r.Context(), image.Id, name)
	if err != nil {
		return nil, err
	}
	return []string{full}, nil
}

// prune removes the images that no container needs: those without a name, or all; and what pulls that failed have left.
func (s *Server) prune(r *http.Request) (any, error) {
	list, err := s.Images.ListImages(r.Context(), &runtimeapi.ListImagesRequest{})
	if err != nil {
		return nil, err
	}
	containers, err := s.containers(r.Context())
	if err != nil {
		return nil, err
	}
	removed := []Image{}
	var errs []error
	if s.DropPulls != nil {
		errs = append(errs, s.DropPulls(r.Context()))
	}
	for _, i := range list.Images {
		if i.Pinned || builtIn(i) || len(i.RepoTags) > 0 && r.FormValue("all") != "true" ||
			len(usersOf(i, containers)) > 0 {
			continue
		}
		if _,
			err := s.Images.RemoveImage(r.Context(),
			&runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: i.Id}}); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s", i.Id, words(err)))
			continue
		}
		removed = append(removed, asImage(i))
	}
	return removed, errors.Join(errs...)
}

// Transfer is a part of an image that is being fetched.
type Transfer struct {
	Ref   string `json:"ref"`
	Bytes int64  `json:"bytes"`
	Total int64  `json:"total"` // 0: not known yet
}

func (s *Server) transfers(r *http.Request) (any, error) {
	if s.Transfers == nil {
		return nil, errors.New("an external container runtime does not report what it is pulling")
	}
	return s.Transfers(r.Context())
}
