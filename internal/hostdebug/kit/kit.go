// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/v2/pkg/archive"
	"github.com/klauspost/compress/gzip"
	"golang.org/x/sync/errgroup"

	"github.com/wherryproject/wherry/internal/hostdebug/session"
	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

// Packed are the tools as this program carries them. It implements session.Tools.
type Packed struct{}

// Write writes a program.
func (Packed) Write(tool string, to io.Writer) error {
	return bundle.Embedded().WriteProgram(programs()[tool], to)
}

// programs are those of a kit, as the program carries them.
func programs() map[string]string {
	return map[string]string{session.KitRunc: bundle.Runc, session.KitFirst: bundle.First,
		session.KitProgram: bundle.Session}
}

// UnpackToolbox unpacks the built-in image into a folder.
func (Packed) UnpackToolbox(ctx context.Context, dir string) error {
	open, _, err := bundle.Embedded().ToolboxImage()
	if err != nil {
		return err
	}
	file, err := open()
	if err != nil {
		return err
	}
	defer file.Close()
	image := tar.NewReader(file)
	for {
		h, err := image.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && strings.HasSuffix(h.Name, ".tar.gz") {
			err = unpackLayer(ctx, image, dir)
		}
		if err != nil {
			return fmt.Errorf("the built-in toolbox: %w", err)
		}
	}
}

func unpackLayer(ctx context.Context, from io.Reader, dir string) error {
	layer, err := gzip.NewReader(from)
	if err != nil {
		return err
	}
	_, err = archive.Apply(ctx, dir, layer)
	return err
}

// Main is the process that an agent starts once, to have a kit in a folder. It returns the exit code.
func Main(dir string, errs io.Writer) int {
	if err := Unpack(context.Background(), dir); err != nil {
		fmt.Fprintln(errs, err)
		return 1
	}
	return 0
}

// Unpack has a kit ready in a folder, in place of what was there.
func Unpack(ctx context.Context, dir string) error {
	made := dir + ".new"
	for _, old := range []string{made, dir} {
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	root := filepath.Join(made, session.KitToolbox)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	var work errgroup.Group
	work.Go(func() error { return Packed{}.UnpackToolbox(ctx, root) })
	for tool := range programs() {
		work.Go(func() error { return place(tool, filepath.Join(made, tool)) })
	}
	if err := work.Wait(); err != nil {
		return errors.Join(err, os.RemoveAll(made))
	}
	return os.Rename(made, dir)
}

// place unpacks a program.
func place(tool, path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	return errors.Join(Packed{}.Write(tool, file), file.Close())
}
