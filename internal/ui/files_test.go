// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
)

// UI-01: the page and its files come from the program alone: views are the page, files are packed when that is asked
// for, and kept for ever where their name says what is in them.
func TestFiles(t *testing.T) {
	script := strings.Repeat("let a = 1;\n", 100)
	k := newKit(t, ByLink, never(t))
	k.page.files = newFiles(fstest.MapFS{"index.html": {Data: []byte("<!doctype html>")}, "favicon.svg": {Data: []byte("<svg/>")},
		"assets/index-abc.js": {Data: []byte(script)}})
	for path, want := range map[string]string{
		"/ui/": "text/html; charset=utf-8", "/ui/index.html": "text/html; charset=utf-8", "/ui/pods/shop": "text/html; charset=utf-8",
		"/ui/favicon.svg": "image/svg+xml", "/ui/assets/index-abc.js": "text/javascript; charset=utf-8",
		"/ui/none.js": "", "/ui/assets/none": "", "/ui/assets/": "", "/ui/assets/../../page.go": "", "/ui/k8sx": "text/html; charset=utf-8",
	} {
		resp := k.ask("GET", path, "")
		code, cache := http.StatusOK, "no-cache"
		switch {
		case want == "":
			code, want, cache = http.StatusNotFound, "text/plain; charset=utf-8", "no-store"
		case strings.HasPrefix(path, "/ui/assets/"):
			cache = "public, max-age=31536000, immutable"
		}
		k.text(code, resp)
		if resp.Header.Get("Content-Type") != want || resp.Header.Get("Cache-Control") != cache {
			t.Errorf("%s: %v", path, resp.Header)
		}
	}
	// a pod's name may have a dot
	k.text(http.StatusOK, k.ask("GET", "/ui/pods/shop/web.v1", "", "Accept", "text/html,*/*"))
	k.text(http.StatusNotFound, k.ask("GET", "/ui/assets/none.js", "", "Accept", "text/html,*/*"))

	resp := k.ask("GET", "/ui/assets/index-abc.js", "", "Accept-Encoding", "br, gzip;q=0.5")
	z, err := gzip.NewReader(resp.Body)
	if err != nil || resp.Header.Get("Content-Encoding") != "gzip" || resp.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("%v: %v", err, resp.Header)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != script {
		t.Errorf("%v: %.40s", err, got)
	}
	tag := k.ask("GET", "/ui/", "").Header.Get("Etag")
	k.text(http.StatusNotModified, k.ask("GET", "/ui/", "", "If-None-Match", tag))
}

// UI-01: what the program carries names no other origin, and has no script of its own in its document.
func TestBuildIsItsOwn(t *testing.T) {
	k := newKit(t, ByLink, never(t))
	text := strings.ToLower(k.text(http.StatusOK, k.ask("GET", "/ui/", "")))
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "<script")
		if !found {
			break
		}
		if tag, _, _ := strings.Cut(after, ">"); !strings.Contains(tag, " src=\"/ui/assets/") {
			t.Errorf("a script in the document: <script%s>", tag)
		}
		rest = after
	}
	for _, bad := range []string{"http://", "https://", "src=\"//", "href=\"//", "javascript:", " onload=", " onerror="} {
		if strings.Contains(text, bad) {
			t.Errorf("index.html has %s", bad)
		}
	}
}

func TestTakesGzip(t *testing.T) {
	for header, want := range map[string]bool{"": false, "gzip": true, "br,GZIP ; q=0.1": true, "gzip;q=0": false, "gzip; q=0.000": false,
		"xgzip": false, "*": false, "deflate, gzip;q=1.0, *;q=0": true} {
		if takesGzip(header) != want {
			t.Errorf("%q: want %t", header, want)
		}
	}
}

// UI-01: no header makes the reading of it fail.
func FuzzTakesGzip(f *testing.F) {
	f.Add("gzip;q=0.5, br")
	f.Fuzz(func(t *testing.T, header string) {
		if takesGzip(header) && !strings.Contains(strings.ToLower(header), "gzip") {
			t.Fatal(header)
		}
	})
}
