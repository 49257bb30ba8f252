// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func program(arch string) Program {
	return Program{Binary: []byte("program of " + arch), Architecture: arch, Version: "v1", Roots: []byte("roots")}
}

// files are those of an image, with their modes.
func files(t *testing.T, img v1.Image) map[string]string {
	t.Helper()
	r := mutate.Extract(img)
	defer r.Close()
	all := map[string]string{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = h.FileInfo().Mode().String() + " " + string(text)
	}
}

// An archive can be read by its name, twice the same bytes come of the same program, and it has what an agent needs.
// (DA-14)
func TestArchive(t *testing.T) {
	write := func() []byte {
		img, err := Of(program("arm64"))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Archive(&out, img, "registry.example.com/wherry:v1"); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	data := write()
	if !bytes.Equal(data, write()) {
		t.Error("two archives of one program differ")
	}
	tag, err := name.NewTag("registry.example.com/wherry:v1")
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }, &tag)
	if err != nil {
		t.Fatal(err)
	}
	all := files(t, img)
	if all["wherry"] != "-rwxr-xr-x program of arm64" || all["tmp"] != "dtrwxrwxrwx " ||
		all["etc/ssl/certs/ca-certificates.crt"] != "-rw-r--r-- roots" {
		t.Errorf("%q", all)
	}
	config, err := img.ConfigFile()
	if err != nil || config.Architecture != "arm64" || config.OS != "linux" || config.Config.Entrypoint[0] != "/wherry" {
		t.Errorf("%v, %+v", err, config)
	}
}

func TestName(t *testing.T) {
	for text, want := range map[string]string{"registry.example.com/wherry:1": "registry.example.com/wherry:1",
		"wherry": "index.docker.io/library/wherry:latest", "a b": "", "x@sha256:b": "", "": ""} {
		if got, err := Name(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
