// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

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
