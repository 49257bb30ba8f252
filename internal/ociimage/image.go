// SPDX-License-Identifier: Apache-2.0

package ociimage

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is one file of an image.
type File struct {
	Path string      // absolute, in the image
	Mode fs.FileMode // permissions; 0 means 0755. fs.ModeDir makes a folder, fs.ModeSymlink a link to Data
	UID  int
	GID  int
	Data []byte
}

// Spec describes an image.
type Spec struct {
	Files        []File
	Architecture string // as GOARCH; default: this program's
	Entrypoint   []string
	Cmd          []string
	Env          []string // NAME=value
	User         string   // name, uid or uid:gid
	WorkingDir   string
	ExposedPorts []string // as "80/tcp"
	Volumes      []string
	Labels       map[string]string
	StopSignal   string
}

// epoch is the time stamp of everything in an image.
var epoch = time.Unix(0, 0).UTC()

// Build makes an image of one layer.
func Build(s Spec) (v1.Image, error) {
	data, err := layerTar(s.Files)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("image layer: %w", err)
	}
	base := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	img, err := mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "wherry"},
	})
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("image configuration: %w", err)
	}
	file = file.DeepCopy()
	file.OS = "linux"
	if file.Architecture = s.Architecture; file.Architecture == "" {
		file.Architecture = runtime.GOARCH
	}
	file.Created = v1.Time{Time: epoch}
	file.Config = v1.Config{
		Entrypoint: s.Entrypoint, Cmd: s.Cmd, Env: s.Env, User: s.User, WorkingDir: s.WorkingDir,
		ExposedPorts: set(s.ExposedPorts), Volumes: set(s.Volumes), Labels: s.Labels, StopSignal: s.StopSignal,
	}
	return mutate.ConfigFile(img, file)
}

func set(names []string) map[string]struct{} {
	if len(names) == 0 {
		return nil
	}
	m := make(map[string]struct{}, len(names))
	for _, n := range names {
		m[n] = struct{}{}
	}
	return m
}

// layerTar packs files and the folders above them, sorted by name.
func layerTar(files []File) ([]byte, error) {
	entries := map[string]File{}
	for _, f := range files {
		if !path.IsAbs(f.Path) {
			return nil, fmt.Errorf("file %q: the path in the image must be absolute", f.Path)
		}
		f.Path = path.Clean(f.Path)
		if old, ok := entries[f.Path]; ok && !old.Mode.IsDir() {
			return nil, fmt.Errorf("file %q: named twice", f.Path)
		}
		entries[f.Path] = f
		for dir := path.Dir(f.Path); dir != "/"; dir = path.Dir(dir) {
			if _, ok := entries[dir]; !ok {
				entries[dir] = File{Path: dir, Mode: fs.ModeDir | 0o755}
			}
		}
	}
	names := make([]string, 0, len(entries))
	for n := range entries {
		names = append(names, n)
	}
	slices.Sort(names)

	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, n := range names {
		if err := writeEntry(w, entries[n]); err != nil {
			return nil, fmt.Errorf("file %q: %w", n, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func writeEntry(w *tar.Writer, f File) error {
	perm := f.Mode.Perm()
	if f.Mode&fs.ModePerm == 0 {
		perm = 0o755
	}
	h := &tar.Header{
		Name: strings.TrimPrefix(f.Path, "/"), Mode: int64(perm), Uid: f.UID, Gid: f.GID, ModTime: epoch,
		Format: tar.FormatPAX,
	}
	if f.Mode&fs.ModeSetuid != 0 {
		h.Mode |= 0o4000
	}
	if f.Mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	switch {
	case f.Mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		return w.WriteHeader(h)
	case f.Mode&fs.ModeSymlink != 0:
		h.Typeflag, h.Linkname = tar.TypeSymlink, string(f.Data)
		return w.WriteHeader(h)
	}
	h.Typeflag, h.Size = tar.TypeReg, int64(len(f.Data))
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(f.Data)
	return err
}

// WriteTar writes one image under one or more names, as an archive that containerd and docker load.
func WriteTar(w io.Writer, img v1.Image, refs ...string) error {
	if len(refs) == 0 {
		return errors.New("image archive: give the image at least one name")
	}
	images := map[name.Reference]v1.Image{}
	for _, r := range refs {
		tag, err := name.NewTag(r)
		if err != nil {
			return fmt.Errorf("image archive: %w", err)
		}
		images[tag] = img
	}
	if err := tarball.MultiRefWrite(images, w); err != nil {
		return fmt.Errorf("image archive: %w", err)
	}
	return nil
}
