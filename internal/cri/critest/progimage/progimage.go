// SPDX-License-Identifier: Apache-2.0

package progimage

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/wherryproject/wherry/internal/ociimage"
)

// Ref is the image's name; its entrypoint is /prog.
const Ref = "wherry.dev/prog:test"

// Archive builds the program with the go command and packs it as an OCI archive, to be imported into a runtime.
func Archive() ([]byte, error) {
	dir, err := os.MkdirTemp("", "wherry-prog-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin := filepath.Join(dir, "prog")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin,
		"github.com/wherryproject/wherry/internal/cri/critest/prog")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building critest/prog: %w: %s", err, out)
	}
	data, err := os.ReadFile(bin)
	if err != nil {
		return nil, err
	}
	img, err := ociimage.Build(ociimage.Spec{Files: []ociimage.File{{Path: "/prog", Data: data}},
		Entrypoint: []string{"/prog"}})
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	err = ociimage.WriteTar(&buf, img, Ref)
	return buf.Bytes(), err
}
