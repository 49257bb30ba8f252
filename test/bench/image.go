// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/wherryproject/wherry/internal/ociimage"
)

const imageName = "wherry.example/bench:1"

// link is another name of the one program.
func link(path string) ociimage.File {
	return ociimage.File{Path: path, Mode: fs.ModeSymlink | 0o777, Data: []byte("wait")}
}

// buildImage makes an archive of an image that holds one static program, and returns its path.
func buildImage(ctx context.Context, dir string) (string, error) {
	bin := filepath.Join(dir, "prog")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "./test/bench/prog")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program of the image: %w: %s", err, out)
	}
	data, err := os.ReadFile(bin)
	if err != nil {
		return "", err
	}
	img, err := ociimage.Build(ociimage.Spec{
		Files: []ociimage.File{{Path: "/bin/wait", Data: data}, link("/bin/true"), link("/bin/end"), link("/bin/there"),
			link("/bin/print"), link("/bin/serve"), link("/bin/connect"), link("/bin/ask"), link("/bin/until")},
		Entrypoint: []string{"/bin/wait"}, Env: []string{"PATH=/bin"},
	})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "image.tar")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := ociimage.WriteTar(f, img, imageName); err != nil {
		return "", err
	}
	return path, f.Close()
}
