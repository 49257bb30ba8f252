// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/wherryproject/wherry/internal/ociimage"
)

// Program is the program of an image.
type Program struct {
	Binary       []byte
	Architecture string // as GOARCH; empty: this program's
	Version      string
	Roots        []byte // certificates as PEM; nil: none
}

// rootsPath is where Go programs look first.
const rootsPath = "/etc/ssl/certs/ca-certificates.crt"

// Roots are the certificates of the authorities that this machine trusts, without which no registry can be reached from
// the image; nil if it has none in the usual places.
func Roots() []byte {
	for _, path := range []string{rootsPath, "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
		"/etc/ssl/cert.pem"} {
		if text, err := os.ReadFile(path); err == nil {
			return text
		}
	}
	return nil
}

// Of makes an image of a program.
func Of(p Program) (v1.Image, error) {
	s := ociimage.Spec{
		Architecture: p.Architecture,
		Files: []ociimage.File{
			{Path: "/wherry", Data: p.Binary},
			{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		},
		Entrypoint: []string{"/wherry"},
		Env:        []string{"PATH=/"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "Wherry",
			"org.opencontainers.image.version":  p.Version,
			"org.opencontainers.image.source":   "https://github.com/wherryproject/wherry",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	if p.Roots != nil {
		s.Files = append(s.Files, ociimage.File{Path: rootsPath, Mode: 0o644, Data: p.Roots})
	}
	return ociimage.Build(s)
}

// Name is the name of an image in full. A digest cannot be chosen.
func Name(text string) (string, error) {
	tag, err := name.NewTag(text)
	if err != nil {
		return "", fmt.Errorf("%q: %w", text, err)
	}
	return tag.Name(), nil
}

// Archive writes an image under a name, as containerd and docker load it.
func Archive(w io.Writer, img v1.Image, ref string) error { return ociimage.WriteTar(w, img, ref) }

// Layout writes images of several architectures into a folder as one image of an OCI layout, under a name. The folder
// must not be there.
func Layout(dir, ref string, programs ...Program) error {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already", dir)
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range programs {
		img, err := Of(p)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: p.Architecture}}})
	}
	at, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	_, tag, _ := strings.Cut(ref[strings.LastIndex(ref, "/")+1:], ":")
	return at.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": ref}))
}
