// SPDX-License-Identifier: Apache-2.0

package ociimage

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func spec() Spec {
	return Spec{
		Files: []File{
			{Path: "/usr/bin/app", Data: []byte("program")},
			{Path: "/etc/secret", Mode: 0o600, UID: 7, GID: 8, Data: []byte("x")},
			{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
			{Path: "/app", Mode: fs.ModeSymlink, Data: []byte("usr/bin/app")},
		},
		Entrypoint: []string{"/app"}, Cmd: []string{"serve"}, Env: []string{"A=b"}, User: "1000:1000",
		ExposedPorts: []string{"80/tcp"}, StopSignal: "SIGUSR1",
	}
}

func archive(t *testing.T, s Spec, refs ...string) []byte {
	t.Helper()
	img, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := WriteTar(&buf, img, refs...); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestSameSpecSameBytes(t *testing.T) {
	a, b := archive(t, spec(), "wherry.dev/x:1"), archive(t, spec(), "wherry.dev/x:1")
	if !bytes.Equal(a, b) {
		t.Error("two builds of one Spec differ")
	}
}

func TestImageContents(t *testing.T) {
	data := archive(t, spec(), "wherry.dev/x:1")
	tag, _ := name.NewTag("wherry.dev/x:1")
	img, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }, &tag)
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := file.Config; c.User != "1000:1000" || c.StopSignal != "SIGUSR1" || c.Entrypoint[0] != "/app" || file.OS != "linux" {
		t.Errorf("configuration %+v is not the Spec's", c)
	}
	layers, _ := img.Layers()
	if len(layers) != 1 {
		t.Fatalf("%d layers, want 1", len(layers))
	}
	r, _ := layers[0].Uncompressed()
	got := map[string]*tar.Header{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = h
	}
	if h := got["etc/secret"]; h == nil || h.Mode != 0o600 || h.Uid != 7 || h.Gid != 8 {
		t.Errorf("etc/secret: %+v", h)
	}
	if h := got["usr/bin/app"]; h == nil || h.Mode != 0o755 {
		t.Errorf("usr/bin/app: %+v", h)
	}
	if h := got["tmp/"]; h == nil || h.Mode != 0o1777 {
		t.Errorf("tmp/: %+v", h)
	}
	if h := got["usr/"]; h == nil || h.Typeflag != tar.TypeDir {
		t.Errorf("usr/: %+v, want the folder above a file", h)
	}
	if h := got["app"]; h == nil || h.Linkname != "usr/bin/app" {
		t.Errorf("app: %+v", h)
	}
}

func TestBadSpecs(t *testing.T) {
	for want, s := range map[string]Spec{
		"must be absolute": {Files: []File{{Path: "app"}}},
		"named twice":      {Files: []File{{Path: "/app"}, {Path: "/./app"}}},
	} {
		if _, err := Build(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	img, err := Build(spec())
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteTar(io.Discard, img); err == nil {
		t.Error("an archive without a name was written")
	}
	if err := WriteTar(io.Discard, img, "Not A Name"); err == nil {
		t.Error("an archive with a bad name was written")
	}
}
