// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"
)

// An image that is too large, or too large for the disk, is not unpacked.
func TestBounded(t *testing.T) {
	for name, test := range map[string]struct {
		bounds bounded
		want   string
	}{"no bounds": {bounded{}, ""}, "within": {bounded{most: 10, spare: 1}, ""}, "too large": {bounded{most: 9}, "more than"},
		"a full disk": {bounded{spare: 1 << 62}, "nearly full"}} {
		b := test.bounds
		b.dir = t.TempDir()
		got := ""
		for _, layer := range []string{"01234", "56789"} {
			b.from = strings.NewReader(layer)
			text, err := io.ReadAll(&b)
			if got += string(text); err != nil {
				got = err.Error()
				break
			}
		}
		if test.want == "" && got != "0123456789" || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// What is left of a disk is bytes and inodes; some file systems have no number of those.
func TestRoom(t *testing.T) {
	for want, fs := range map[string]unix.Statfs_t{
		"":                    {Bavail: 100, Bsize: 4096, Files: 1000, Ffree: 60},
		"is nearly full":      {Bavail: 99, Bsize: 4096, Files: 1000, Ffree: 1000},
		"no inodes left":      {Bavail: 100, Bsize: 4096, Files: 1000, Ffree: 59},
		"nothing is numbered": {Bavail: 100, Bsize: 4096},
	} {
		err := room("/d", &fs, 100*4096)
		if fine := want == "" || fs.Files == 0; (err == nil) != fine || !fine && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// layerOf is a layer of entries.
func layerOf(t *testing.T, entries ...*tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range entries {
		h.Mode, h.Uid, h.Gid = 0o755, os.Getuid(), os.Getgid()
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(append([]byte("0\n"), make([]byte, 510)...)[:h.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// withHoles is a layer with one file, of nothing but zeros that are not in the layer.
func withHoles(t *testing.T, size int64) []byte {
	t.Helper()
	text := layerOf(t, &tar.Header{Name: "x", Size: 512, PAXRecords: map[string]string{"WRY.sparse.major": "1", "WRY.sparse.minor": "0",
		"WRY.sparse.name": "holes", "WRY.sparse.realsize": fmt.Sprint(size)}})
	return bytes.ReplaceAll(text, []byte("WRY.sparse."), []byte("GNU.sparse.")) // no writer takes that
}

// DA-07: what is written of an image is bounded, however little is read for it: holes, folders that a name or a link
// implies, files without bytes; so is what is kept in memory.
func TestBoundsHoldForWhatIsWritten(t *testing.T) {
	deep := strings.Repeat("d/", 300)
	var empty, folders []*tar.Header
	for i := range 300 {
		empty = append(empty, &tar.Header{Name: fmt.Sprint(i), Typeflag: tar.TypeReg})
		folders = append(folders, &tar.Header{Name: fmt.Sprint(i % 2), Typeflag: tar.TypeDir,
			PAXRecords: map[string]string{"WHERRY.comment": strings.Repeat("x", 1000)}})
	}
	const most = 1 << 20
	for name, c := range map[string]struct {
		layer []byte
		want  string
	}{
		"a file":              {layerOf(t, &tar.Header{Name: "d/f", Size: 512}), ""},
		"folders that are":    {layerOf(t, folders[:10]...), ""},
		"holes":               {withHoles(t, 8*most), "holes is a file with holes"},
		"folders by a name":   {layerOf(t, &tar.Header{Name: deep + "f"}), "more than the 1 MiB"},
		"folders by a link":   {layerOf(t, &tar.Header{Name: "l", Linkname: deep, Typeflag: tar.TypeSymlink}, &tar.Header{Name: "l/f"}), "more than the 1 MiB"},
		"files without bytes": {layerOf(t, empty...), "more than the 1 MiB"},
		"much said of each":   {layerOf(t, folders[:60]...), "more than the 1 MiB"},
	} {
		layer := static.NewLayer(c.layer, types.DockerUncompressedLayer)
		dir := t.TempDir()
		err := unpackLayer(t.Context(), layer, dir, &bounded{dir: dir, most: most})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err := unpackLayer(t.Context(), layer, t.TempDir(), &bounded{}); err != nil {
			t.Errorf("%s, without bounds: %v", name, err)
		}
	}
}

// zeros are an archive without an end.
type zeros struct{ read int64 }

func (z *zeros) Read(p []byte) (int, error) {
	z.read += int64(len(p))
	return len(p), nil
}

func (z *zeros) Close() error { return nil }

// DA-07: the archive that an engine gives is bounded too, and is where the image is unpacked, not where temporary files
// are.
func TestBoundsHoldForAnArchive(t *testing.T) {
	from := &zeros{}
	i := &Image{Ref: "127.0.0.1:1/none:1", Most: 1 << 20, Keys: authn.DefaultKeychain,
		Own: func(context.Context) (io.ReadCloser, error) { return from, nil }}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("registries are not asked"))
	dir := t.TempDir()
	t.Setenv("TMPDIR", "/none")
	_, err := i.Unpack(ctx, dir)
	if err == nil || !strings.Contains(err.Error(), "more than the 1 MiB") || from.read > 2<<20 {
		t.Errorf("%v after %d bytes", err, from.read)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
