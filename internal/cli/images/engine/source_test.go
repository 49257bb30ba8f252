// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Names of engines' images are told from those of files.
func TestParse(t *testing.T) {
	for name, want := range map[string]struct {
		source Source
		is     bool
		err    string
	}{
		"docker:app:1":                       {source: Source{"docker", "app:1"}, is: true},
		"docker://app:1":                     {source: Source{"docker", "app:1"}, is: true},
		"containerd:reg.test:5000/a@sha256:": {source: Source{"containerd", "reg.test:5000/a@sha256:"}, is: true},
		"docker:":                            {is: true, err: "which image?"},
		"containerd: a":                      {is: true, err: "which image?"},
		"./docker:app:1":                     {},
		"docker":                             {},
		"docker.tar":                         {},
		"app:1.tar":                          {},
		"podman:app:1":                       {},
		"":                                   {},
	} {
		source, is, err := Parse(name)
		if source != want.source || is != want.is || (err == nil) != (want.err == "") ||
			err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%q: %+v, %v, %v; want %+v", name, source, is, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"docker:a", "containerd://a", "a.tar", ":"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		source, is, err := Parse(name)
		if is && err == nil && (source.Image == "" || !strings.HasSuffix(name, source.Image) ||
			!strings.HasPrefix(name, source.Engine)) {
			t.Errorf("%q is %+v", name, source)
		}
		if !is && (err != nil || source != Source{}) {
			t.Errorf("%q is a file, and %+v, %v", name, source, err)
		}
	})
}

// The same image in two namespaces is one; two images of one name are not guessed among.
func TestChoose(t *testing.T) {
	in := func(namespace, text string) place {
		return place{namespace, images.Image{Target: ocispec.Descriptor{Digest: digest.FromString(text)}}}
	}
	for name, c := range map[string]struct {
		found []place
		want  string
	}{
		"none": {nil, `there is no image "app:1" (namespaces: k8s.io, moby)`},
		"one":  {[]place{in("moby", "x")}, "moby"},
		"same": {[]place{in("k8s.io", "x"), in("moby", "x")}, "k8s.io"},
		"different": {[]place{in("k8s.io", "x"), in("moby", "y")},
			`"app:1" is another image in namespace k8s.io than in moby: choose one with --namespace`},
	} {
		got, err := choose(c.found, "app:1", []string{"moby", "k8s.io"})
		text := got.namespace
		if err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// No engine is read that is not known.
func TestUnknownEngine(t *testing.T) {
	if _, err := (Source{"podman", "a"}).Open(context.Background(), Options{}); err == nil ||
		!strings.Contains(err.Error(), `"podman"`) {
		t.Error(err)
	}
}
