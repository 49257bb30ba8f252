// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// ManifestName is the manifest's name in a bundle.
const ManifestName = "capture.json"

// Manifest says what a bundle is.
type Manifest struct {
	Format  int       `json:"format"` // 1
	Target  string    `json:"target"` // as it was typed: pod shop/web, docker:web
	UID     string    `json:"uid,omitempty"`
	Node    string    `json:"node,omitempty"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
	Version string    `json:"version"` // of wherry
	Secrets bool      `json:"secrets"` // whether values of environment variables are in it
	Parts   []Part    `json:"parts"`
	Missing []Missing `json:"missing"`
}

// Part is a file of a bundle.
type Part struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Cut   bool   `json:"cut,omitempty"` // it was longer
}

// Missing is what is not in a bundle.
type Missing struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// mostParts is how many files a bundle has at most: as many as [Read] takes.
const mostParts = 100_000

// mostPath is the length of a file's name at most, which is the kernel's.
const mostPath = 4 << 10

// mostName is the length at most of what a manifest says of one file: a path's 4 KiB, each byte of which may take six.
const mostName = 32 << 10

// Format is that of the bundles that this package writes.
const Format = 1

// Writer writes a bundle. Not for use by several at once.
type Writer struct {
	manifest Manifest
	left     int64  // bytes that may still come
	first    string // of what does not fit any more, and how many after it
	more     int
	unsaid   int // what is missing besides
	listed   int // bytes of what the manifest lists
	now      func() time.Time
	zip      *zstd.Encoder
	tar      *tar.Writer
}

// NewWriter begins a bundle of so many bytes, not packed, at most.
func NewWriter(to io.Writer, m Manifest, most int64, now func() time.Time) (*Writer, error) {
	z, err := zstd.NewWriter(to)
	if err != nil {
		return nil, err
	}
	m.Format, m.Began, m.Parts, m.Missing = Format, now().UTC(), []Part{}, []Missing{}
	return &Writer{manifest: m, left: most, now: now, zip: z, tar: tar.NewWriter(z)}, nil
}

// Describe lets the manifest be filled in by what was found out meanwhile.
func (w *Writer) Describe(fill func(*Manifest)) { fill(&w.manifest) }

const (
	mostMissing = 10_000  // a container may have any number of links
	mostWords   = 1 << 10 // of what is missing, and of why
	// mostListed bounds what the manifest lists, in bytes of it: half of what [Read] takes.
	mostListed = 32 << 20
)

// Miss says that something is not in the bundle.
func (w *Writer) Miss(what string, why error) {
	words := why.Error()
	m := Missing{what[:min(len(what), mostWords)], words[:min(len(words), mostWords)]}
	if len(w.manifest.Missing) >= mostMissing || !w.lists(m) {
		w.unsaid++
		return
	}
	w.manifest.Missing = append(w.manifest.Missing, m)
}

// lists reports whether there is room in the manifest for something, and takes it.
func (w *Writer) lists(what any) bool {
	text, err := json.Marshal(what)
	if err != nil || w.listed+len(text) > mostListed {
		return false
	}
	w.listed += len(text)
	return true
}

// full is why nothing more is added; nil as long as there is room.
func (w *Writer) full() error {
	switch {
	case w.left == 0:
		return errors.New("the bundle has reached its limit of size (--max-size)")
	case len(w.manifest.Parts) >= mostParts || w.listed > mostListed-mostName:
		return fmt.Errorf("the bundle has %d files, and no more are taken", len(w.manifest.Parts))
	}
	return nil
}

// missFull says that a file does not fit any more: of a folder that does not, once.
func (w *Writer) missFull(name string, why error) {
	if n := len(w.manifest.Missing); n > 0 && w.manifest.Missing[n-1].Why == why.Error() {
		w.more++
		w.manifest.Missing[n-1].What = fmt.Sprintf("%s, and %d after it", w.first, w.more)
		return
	}
	w.first, w.more = name, 0
	w.Miss(name, why)
}

// Text adds a file. Only an error of what is written to comes back; what does not fit any more is named in the
// manifest.
func (w *Writer) Text(name string, text []byte) error {
	return w.text(Part{Name: name}, text)
}

// End adds the end of what is read, up to so many bytes of it. broken is why it could not be read to its end.
func (w *Writer) End(name string, from io.Reader, most int) (broken, err error) {
	part := Part{Name: name}
	var text []byte
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if text = append(text, piece[:n]...); len(text) > 2*most {
			text, part.Cut = append(text[:0], text[len(text)-most:]...), true
		}
		if err != nil {
			if err != io.EOF {
				broken = err
			}
			break
		}
	}
	if len(text) > most {
		text, part.Cut = text[len(text)-most:], true
	}
	return broken, w.text(part, text)
}

func (w *Writer) text(part Part, text []byte) error {
	name := part.Name
	if why := w.full(); why != nil {
		w.missFull(name, why)
		return nil
	}
	if int64(len(text)) > w.left {
		text, part.Cut = text[:w.left], true
	}
	part.Bytes = int64(len(text))
	if err := w.header(name, part.Bytes, w.now()); err != nil {
		return err
	}
	if _, err := w.tar.Write(text); err != nil {
		return err
	}
	w.added(part)
	return nil
}

// JSON adds a file that has something as JSON.
func (w *Writer) JSON(name string, what any) error {
	text, err := json.MarshalIndent(what, "", "  ")
	if err != nil {
		w.Miss(name, err)
		return nil
	}
	return w.Text(name, append(text, '\n'))
}

// Archive adds the files of a tar archive below a folder, without a prefix that their names have. An archive that is
// none, or ends in the middle, is broken, which the caller is to say in his words; err is that of what is written to.
func (w *Writer) Archive(folder, without string, from io.Reader) (broken, err error) {
	r := tar.NewReader(from)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return err, nil
		}
		if err := w.member(folder, strings.TrimPrefix(h.Name, without), h, r); err != nil {
			return nil, err
		}
	}
}

// member adds a file of an archive.
func (w *Writer) member(folder, name string, h *tar.Header, from io.Reader) error {
	name = path.Join(folder, path.Clean("/"+name))
	switch {
	case h.Typeflag == tar.TypeDir:
		return nil
	case !fs.ValidPath(name):
		w.Miss(fmt.Sprintf("%s: a file %q", folder, h.Name), errors.New("it has no name for a bundle"))
		return nil
	case h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink:
		w.Miss(name, fmt.Errorf("it is a link to %q", h.Linkname))
		return nil
	case h.Typeflag != tar.TypeReg:
		w.Miss(name, errors.New("it is a device, a pipe or a socket"))
		return nil
	}
	if len(name) > mostPath {
		w.Miss(name[:mostWords]+"…", errors.New("its name is too long"))
		return nil
	}
	if why := w.full(); why != nil {
		w.missFull(name, why)
		return nil
	}
	part := Part{Name: name, Bytes: min(h.Size, w.left), Cut: h.Size > w.left}
	// What has been promised has to come: an archive that ends in the middle is filled up with nothing.
	if err := w.header(name, part.Bytes, h.ModTime); err != nil {
		return err
	}
	source := &remembering{from: from}
	n, err := io.CopyN(w.tar, source, part.Bytes)
	if err != nil && source.err == nil {
		return err
	}
	if err != nil {
		w.Miss(name, fmt.Errorf("it ends after %d bytes of %d: %w", n, h.Size, source.err))
		part.Cut = true
		if _, err := io.CopyN(w.tar, zeros{}, part.Bytes-n); err != nil {
			return err
		}
	}
	w.added(part)
	return nil
}

// remembering distinguishes read errors from write errors.
type remembering struct {
	from io.Reader
	err  error
}

func (r *remembering) Read(p []byte) (n int, err error) {
	n, err = r.from.Read(p)
	r.err = err
	return n, err
}

// zeros reads nothing but zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func (w *Writer) header(name string, size int64, at time.Time) error {
	return w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: size,
		ModTime: at.Truncate(time.Second)})
}

func (w *Writer) added(p Part) {
	w.left -= p.Bytes
	_ = w.lists(p) // there was room for it
	w.manifest.Parts = append(w.manifest.Parts, p)
}

// Close ends the bundle with its manifest, which comes back.
func (w *Writer) Close() (Manifest, error) {
	if w.unsaid > 0 {
		w.manifest.Missing = append(w.manifest.Missing, Missing{fmt.Sprintf("%d more", w.unsaid),
			fmt.Sprintf("only the first %d are told", mostMissing)})
	}
	w.manifest.Ended = w.now().UTC()
	text, err := json.MarshalIndent(w.manifest, "", "  ")
	if err == nil {
		err = w.header(ManifestName, int64(len(text)), w.now())
	}
	if err == nil {
		_, err = w.tar.Write(text)
	}
	for _, closing := range []func() error{w.tar.Close, w.zip.Close} { // of a full disk all of them speak
		if cerr := closing(); err == nil {
			err = cerr
		}
	}
	return w.manifest, err
}
