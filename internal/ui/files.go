// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/wherryproject/wherry/internal/ui/gate"
)

// dist is what `make ui` has built.
//
//go:embed all:dist
var dist embed.FS

// built is the page's build.
func built() fs.FS {
	of, err := fs.Sub(dist, "dist")
	if err != nil {
		return dist // never: the folder is named right above
	}
	return of
}

const index = "index.html"

// files serves the page's build. A file is read and compressed when it is first asked for.
type files struct {
	from fs.FS
	mu   sync.Mutex
	had  map[string]*file
}

// file is one of them.
type file struct {
	plain, packed []byte // packed: by gzip; nil: that is not shorter
	tag           string
	kind          string
}

func newFiles(from fs.FS) *files { return &files{from: from, had: map[string]*file{}} }

// ServeHTTP serves a file, or at the path of one of the page's views the page itself.
func (f *files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, gate.Prefix)
	if name == "" {
		name = index
	}
	found, err := f.get(name)
	// A view's path may have a dot, as a pod's name may: a browser that goes there says that it wants a page.
	view := gate.Route(r.URL.Path) == gate.Document &&
		(!strings.Contains(name, ".") || strings.Contains(r.Header.Get("Accept"), "text/html"))
	if err != nil && view {
		name = index
		found, err = f.get(name)
	}
	if err != nil {
		writeText(w, http.StatusNotFound, fmt.Sprintf("the page has no file %s", r.URL.Path))
		return
	}
	found.serve(w, r, gate.Route(r.URL.Path) == gate.Asset)
}

func (f *files) get(name string) (*file, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if had := f.had[name]; had != nil {
		return had, nil
	}
	plain, err := fs.ReadFile(f.from, name)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(plain)
	made := &file{plain: plain, tag: fmt.Sprintf("%x", sum[:12]), kind: kindOf(name)}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(plain); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	if packed.Len() < len(plain) {
		made.packed = packed.Bytes()
	}
	f.had[name] = made
	return made, nil
}

// serve writes a file. Those whose names change with what is in them are kept for ever.
func (f *file) serve(w http.ResponseWriter, r *http.Request, named bool) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if named {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body, tag := f.plain, f.tag
	if f.packed != nil && takesGzip(r.Header.Get("Accept-Encoding")) {
		body, tag = f.packed, tag+"-gzip"
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Etag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// takesGzip reports whether a client takes gzip, by its header Accept-Encoding.
func takesGzip(header string) bool {
	for one := range strings.SplitSeq(header, ",") {
		coding, weight, _ := strings.Cut(one, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		q, ok := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(weight), " ", ""), "q=")
		return !ok || strings.Trim(q, "0.") != ""
	}
	return false
}

// kindOf is a file's type by its name. The machine's own table of types is not asked: it differs from one to the next.
func kindOf(name string) string {
	kinds := map[string]string{
		".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
		".json": "application/json", ".map": "application/json", ".webmanifest": "application/manifest+json",
		".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon",
		".woff2": "font/woff2", ".txt": "text/plain; charset=utf-8",
	}
	if kind := kinds[path.Ext(name)]; kind != "" {
		return kind
	}
	return "application/octet-stream"
}
