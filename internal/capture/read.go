// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/klauspost/compress/zstd"
)

const (
	mostMembers = 200_000
	mostMemory  = 64 << 20 // of what packs it, and of what is kept of it
	mostTotal   = 64 << 30 // of all files, not packed
	mostKept    = 1 << 20  // of one file
	mostShort   = 16 << 10 // of one of a process, of which a line is shown
	mostEnd     = 64 << 10 // of a log's end
)

// errStop ends Each early.
var errStop = errors.New("no more is wanted")

// Each hands over the files of a bundle, one after the other. What is no bundle is an error, after the files before.
func Each(from io.Reader, take func(name string, size int64, content io.Reader) error) error {
	z, err := zstd.NewReader(from, zstd.WithDecoderMaxMemory(mostMemory), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer z.Close()
	r := tar.NewReader(z)
	total := int64(0)
	for n := 0; ; n++ {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		switch {
		case errors.Is(err, zstd.ErrMagicMismatch) || errors.Is(err, tar.ErrHeader):
			return errors.New("it is not a bundle made by wherry capture")
		case err != nil:
			return fmt.Errorf("the bundle is damaged, or was cut: %w", err)
		case n >= mostMembers:
			return fmt.Errorf("the bundle has more than %d files", mostMembers)
		case h.Typeflag != tar.TypeReg || !fs.ValidPath(h.Name):
			return fmt.Errorf("it is not a bundle made by wherry capture: there is %q in it", h.Name)
		}
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse") { // a few bytes for terabytes
				return fmt.Errorf("it is not a bundle made by wherry capture: %q has holes", h.Name)
			}
		}
		if total += h.Size; total > mostTotal || h.Size < 0 {
			return fmt.Errorf("the bundle has more than %d GiB", mostTotal>>30)
		}
		if err := take(h.Name, h.Size, damaged{r}); err != nil {
			return err
		}
	}
}

// damaged says what it means that a file cannot be read to its end.
type damaged struct{ from io.Reader }

func (d damaged) Read(p []byte) (int, error) {
	n, err := d.from.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("the bundle is damaged, or was cut: %w", err)
	}
	return n, err
}

// Open hands over one file of a bundle; without one of that name it is an error that says how to find one.
func Open(from io.Reader, name string, to io.Writer) error {
	err := Each(from, func(n string, _ int64, content io.Reader) error {
		if n != strings.TrimPrefix(name, "./") {
			return nil
		}
		if _, err := io.Copy(to, content); err != nil {
			return err
		}
		return errStop
	})
	switch {
	case errors.Is(err, errStop):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("there is no %q in the bundle: --list lists what is in it", name)
}

// Bundle is what is kept in memory of one: its manifest, and the files that are wanted.
type Bundle struct {
	Manifest Manifest
	Files    map[string][]byte // of those that were wanted: beginnings, and the ends of logs
}

// kept is what is kept of a file: of a log its end, of others their beginning.
func kept(name string, content io.Reader) ([]byte, error) {
	most := int64(mostKept)
	switch {
	case name == ManifestName:
		most = mostMemory
	case strings.Contains(name, "/proc/"):
		most = mostShort
	}
	if !strings.HasPrefix(name, Logs+"/") {
		return io.ReadAll(io.LimitReader(content, most))
	}
	var end []byte
	piece := make([]byte, 32<<10)
	for {
		n, err := content.Read(piece)
		if end = append(end, piece[:n]...); len(end) > mostEnd {
			end = append(end[:0], end[len(end)-mostEnd:]...)
		}
		if err == io.EOF {
			return end, nil
		}
		if err != nil {
			return end, err
		}
	}
}

// Read reads a bundle whole.
func Read(from io.Reader, wanted func(name string) bool) (*Bundle, error) {
	b := &Bundle{Files: map[string][]byte{}}
	var manifest []byte
	size := 0
	err := Each(from, func(name string, _ int64, content io.Reader) error {
		if name != ManifestName && (!wanted(name) || size > mostMemory) {
			return nil
		}
		text, err := kept(name, content)
		if name == ManifestName {
			manifest = text
			return err
		}
		b.Files[name] = text
		size += len(text)
		return err
	})
	if err != nil {
		return nil, err
	}
	if manifest == nil {
		return nil, errors.New("it is not a bundle made by wherry capture, or not a whole one: there is no " +
			ManifestName +
			" in it")
	}
	if err := json.Unmarshal(manifest, &b.Manifest); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", ManifestName, err)
	}
	if b.Manifest.Format < Format {
		return nil, errors.New("it is not a bundle made by wherry capture: its " + ManifestName + " names no format")
	}
	if b.Manifest.Format > Format {
		return nil, fmt.Errorf("the bundle has format %d, and this wherry knows format %d: use a newer one",
			b.Manifest.Format, Format)
	}
	return b, nil
}
