// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/wherryproject/wherry/internal/ociimage"
	"github.com/wherryproject/wherry/test/images"
)

// World is what the tests of one run share. Make one with NewWorld in TestMain; Close removes it.
type World struct {
	Wherry   string    // the binary under test
	Kubectls []Kubectl // at least the Kubernetes project's own of this module's version; also the system's, if any
	Images   map[string]v1.Image
	Archive  string // all images in archives to import
	NoBusy   error  // why there is no busybox image; tests with Sh are skipped then
	dir      string
}

// Kubectl is one kubectl program.
type Kubectl struct{ Name, Path string }

// NewWorld finds the binary under test and builds what the tests need: kubectl, the images.
func NewWorld(ctx context.Context) (*World, error) {
	w := &World{Images: map[string]v1.Image{}}
	var err error
	if w.Wherry, err = findWherry(); err != nil {
		return nil, err
	}
	if w.dir, err = os.MkdirTemp("", "wherry-e2e-"); err != nil {
		return nil, err
	}
	if err := errors.Join(removeStale(ctx, w.Wherry), w.build(ctx)); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Close removes what NewWorld built.
func (w *World) Close() error { return os.RemoveAll(w.dir) }

func findWherry() (string, error) {
	path := os.Getenv("WHERRY")
	if path == "" {
		path = "../../bin/wherry"
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no binary to test: run `make build`, or name one in $WHERRY: %w", err)
	}
	return path, nil
}

func (w *World) build(ctx context.Context) error {
	own := filepath.Join(w.dir, "kubectl")
	if err := buildKubectl(ctx, own); err != nil {
		return err
	}
	w.Kubectls = []Kubectl{{"kubectl", own}}
	if path, err := exec.LookPath("kubectl"); err == nil {
		w.Kubectls = append(w.Kubectls, Kubectl{"system-kubectl", path})
	}
	tool, err := images.Tool(ctx, w.dir)
	if err != nil {
		return err
	}
	w.Images[images.ToolRef] = tool
	busybox, err := images.Busybox(ctx)
	switch {
	case errors.Is(err, images.ErrNoBusybox):
		w.NoBusy = err
	case err != nil:
		return err
	default:
		w.Images[images.BusyboxRef] = busybox
	}
	w.Archive = filepath.Join(w.dir, "images")
	return w.writeArchives()
}

// buildKubectl stamps the Kubernetes version into kubectl, as its own build does: it compares itself with the server.
func buildKubectl(ctx context.Context, out string) error {
	text, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubectl").Output()
	if err != nil {
		return fmt.Errorf("find the version of k8s.io/kubectl: %w", err)
	}
	version := strings.Replace(strings.TrimSpace(string(text)), "v0", "v1", 1)
	return images.GoBuildWith(ctx, out, "github.com/wherryproject/wherry/test/kubectl",
		"-s -w -X k8s.io/component-base/version.gitVersion="+version)
}

func (w *World) writeArchives() error {
	if err := os.Mkdir(w.Archive, 0o755); err != nil {
		return err
	}
	for ref, img := range w.Images {
		f, err := os.Create(filepath.Join(w.Archive, strings.NewReplacer("/", "_", ":", "_").Replace(ref)+".tar"))
		if err != nil {
			return err
		}
		if err := errors.Join(ociimage.WriteTar(f, img, ref), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Archives are the image archives, for `wherry image import`.
func (w *World) Archives() ([]string, error) { return filepath.Glob(filepath.Join(w.Archive, "*.tar")) }
