// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/tar"
	"bytes"
	"io"
	"maps"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// withConfig is an image with another configuration.
func withConfig(base v1.Image, change func(*v1.Config)) (v1.Image, error) {
	file, err := base.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	change(&file.Config)
	return mutate.ConfigFile(base, file)
}

// withLinks is an image with a layer more, of links, in the place of what has their names.
func withLinks(base v1.Image, links map[string]string) (v1.Image, error) {
	var entries []tar.Header
	for _, name := range slices.Sorted(maps.Keys(links)) {
		entries = append(entries, tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: links[name], Mode: 0o777})
	}
	layer, err := layerOf(entries...)
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(base, layer)
}

// layerOf is a layer with just these entries, whatever they are; files hold an "x".
func layerOf(entries ...tar.Header) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		if e.Typeflag == tar.TypeReg {
			e.Size = 1
		}
		if err := w.WriteHeader(&e); err != nil {
			return nil, err
		}
		if e.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte("x")); err != nil {
				return nil, err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	})
}
