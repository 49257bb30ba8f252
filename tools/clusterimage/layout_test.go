// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/wherryproject/wherry/internal/cluster/image"
)

func program(arch string) image.Program {
	return image.Program{Binary: []byte("program of " + arch), Architecture: arch, Version: "v1"}
}

// A layout has one image of each architecture, under one name, and is not written over what is there.
func TestLayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	if err := writeLayout(dir, "ghcr.io/wherryproject/wherry:v1", program("amd64"), program("arm64")); err != nil {
		t.Fatal(err)
	}
	root, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	top, err := root.IndexManifest()
	if err != nil || len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v1" {
		t.Fatalf("%v, %+v", err, top)
	}
	index, err := root.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	all, err := index.IndexManifest()
	if err != nil || len(all.Manifests) != 2 {
		t.Fatalf("%v, %+v", err, all)
	}
	for i, arch := range []string{"amd64", "arm64"} {
		img, err := index.Image(all.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil || all.Manifests[i].Platform.Architecture != arch || config.Architecture != arch {
			t.Errorf("%s: %v, %+v", arch, err, config)
		}
	}
	if err := writeLayout(dir, "x:v1", program("amd64")); err == nil {
		t.Error("it is written over another")
	}
}
