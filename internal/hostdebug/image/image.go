// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/containerd/containerd/v2/pkg/archive"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/wherryproject/wherry/internal/hostdebug/ocispec"
)

// Image is an image to debug with: of the target's own engine, if that has it, else of its registry.
type Image struct {
	Ref string
	// Own reads an archive of it that the engine has; nil: the registry alone is asked.
	Own func(ctx context.Context) (io.ReadCloser, error)
	// Keys are the credentials for registries, and Whose says where they are from, for a user whom one refuses.
	Keys  authn.Keychain
	Whose string
	Note  func(format string, args ...any) // is called with what takes time; may be nil

	// Reach is how registries are asked; nil: as on a command line.
	Reach http.RoundTripper

	Most  int64 // bytes that its files take, and of an archive of it; 0: as many as there are
	Spare int64 // bytes of the disk that are left free; 0: none
}

// bounds are those of one reading of it.
func (i *Image) bounds(dir string) *bounded { return &bounded{dir: dir, most: i.Most, spare: i.Spare} }

// Unpack implements session.Image.
func (i *Image) Unpack(ctx context.Context, dir string) (ocispec.Image, error) {
	img, done, err := i.get(ctx, dir)
	if err != nil {
		return ocispec.Image{}, fmt.Errorf("image %s: %w", i.Ref, err)
	}
	defer done()
	layers, err := img.Layers()
	if err != nil {
		return ocispec.Image{}, fmt.Errorf("image %s: %w", i.Ref, err)
	}
	bounds := i.bounds(dir)
	for n, l := range layers {
		if err := unpackLayer(ctx, l, dir, bounds); err != nil {
			return ocispec.Image{}, fmt.Errorf("image %s: layer %d of %d: %w", i.Ref, n+1, len(layers), err)
		}
	}
	config, err := img.ConfigFile()
	if err != nil {
		return ocispec.Image{}, fmt.Errorf("image %s: %w", i.Ref, err)
	}
	return configOf(&config.Config, func(file string) ([]byte, error) { return listOf(dir, file) })
}

// get is the image, and what is to be done when it has been read.
func (i *Image) get(ctx context.Context, dir string) (v1.Image, func(), error) {
	var absent error
	if i.Own != nil {
		img, done, err := i.local(ctx, dir)
		if err == nil {
			return img, done, nil
		}
		absent = fmt.Errorf("the container's engine does not have it: %w", err)
	}
	img, err := i.pull(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, absent)
	}
	return img, func() {}, nil
}

// pull is the image of its registry.
func (i *Image) pull(ctx context.Context) (v1.Image, error) {
	ref, err := name.ParseReference(i.Ref)
	if err != nil {
		return nil, err
	}
	if i.Note != nil {
		i.Note("pulling image %s", ref)
	}
	how := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(i.Keys),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH})}
	if i.Reach != nil {
		how = append(how, remote.WithTransport(i.Reach))
	}
	img, err := remote.Image(ref, how...)
	if refused := (*transport.Error)(nil); errors.As(err, &refused) &&
		(refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden) {
		return nil, fmt.Errorf("%w (%s)", unquoted(err), i.Whose)
	}
	return img, unquoted(err)
}

// unquoted is an error without the text of an answer that is not in the words of a registry: one may be led to what is
// none, and the text is not for who has named the image.
func unquoted(err error) error {
	answer := (*transport.Error)(nil)
	if !errors.As(err, &answer) || len(answer.Errors) > 0 {
		return err
	}
	who := "the registry"
	if answer.Request != nil {
		who = answer.Request.URL.Host
	}
	return fmt.Errorf("%s has answered %d %s, and nothing in the words of a registry", who, answer.StatusCode,
		http.StatusText(answer.StatusCode))
}

// local is the image out of the target's own engine, as an archive that is gone with its last reader. It is on the disk
// on which the image is unpacked: a folder for temporary files may be in memory.
func (i *Image) local(ctx context.Context, dir string) (v1.Image, func(), error) {
	from, err := i.Own(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer from.Close()
	file, err := os.CreateTemp(dir, ".wherry-debug-image-*")
	if err != nil {
		return nil, nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	bounds := i.bounds(dir)
	bounds.from = from
	size, err := io.Copy(file, bounds)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(file, 0, size)), nil }
	img, err := tarball.Image(open, nil)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return img, func() { file.Close() }, nil
}

func unpackLayer(ctx context.Context, l v1.Layer, dir string, bounds *bounded) error {
	r, err := l.Uncompressed()
	if err != nil {
		return unquoted(err)
	}
	defer r.Close()
	bounds.from = r
	_, err = archive.Apply(ctx, dir, bounds, archive.WithFilter(bounds.accept))
	return err
}

// configOf is what an image's configuration says of the process to run. read reads a file of the image.
func configOf(c *v1.Config, read func(string) ([]byte, error)) (ocispec.Image, error) {
	img := ocispec.Image{Command: append(append([]string{}, c.Entrypoint...), c.Cmd...), Env: c.Env,
		WorkDir: c.WorkingDir}
	user, group, _ := strings.Cut(c.User, ":")
	var err error
	if img.UID, img.GID, err = idsOf(user, group, read); err != nil {
		return img, fmt.Errorf("its user %q: %w; name another with --user", c.User, err)
	}
	return img, nil
}

// mostList bounds the image's lists of users and of groups, which are kept in memory.
const mostList = 4 << 20

// listOf reads one of those lists. It is whatever the image has made of that name: of a fifo the end would be waited
// for, of a device there may be none, and opening one may do something to the machine.
func listOf(dir, file string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file there", file)
	}
	if info.Size() > mostList {
		return nil, fmt.Errorf("%s has more than %d MiB there", file, mostList>>20)
	}
	return root.ReadFile(file)
}

// idsOf finds the numbers of a user and a group, by the image's own files where they are names.
func idsOf(user, group string, read func(string) ([]byte, error)) (uid, gid uint32, err error) {
	if user != "" {
		n, perr := strconv.ParseUint(user, 10, 31)
		key := 0
		if perr == nil {
			key = 2
		}
		uid = uint32(n)
		passwd, rerr := read("etc/passwd")
		line := entry(string(passwd), key, user, 4)
		switch {
		case line != nil:
			u, uerr := strconv.ParseUint(line[2], 10, 31)
			g, gerr := strconv.ParseUint(line[3], 10, 31)
			if err := errors.Join(uerr, gerr); err != nil {
				return 0, 0, err
			}
			uid, gid = uint32(u), uint32(g)
		case perr != nil:
			return 0, 0, errors.Join(errors.New("there is no such user in the image's /etc/passwd"), rerr)
		}
	}
	if group == "" {
		return uid, gid, nil
	}
	if n, err := strconv.ParseUint(group, 10, 31); err == nil {
		return uid, uint32(n), nil
	}
	groups, rerr := read("etc/group")
	line := entry(string(groups), 0, group, 3)
	if line == nil {
		return 0, 0, errors.Join(errors.New("there is no such group in the image's /etc/group"), rerr)
	}
	n, err := strconv.ParseUint(line[2], 10, 31)
	return uid, uint32(n), err
}

// entry is the line of a file like /etc/passwd whose field has a value, in at least so many fields; nil without one.
func entry(text string, field int, value string, least int) []string {
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ":", least+1) // a line may be nothing but colons
		if len(f) >= least && f[field] == value {
			return f
		}
	}
	return nil
}
