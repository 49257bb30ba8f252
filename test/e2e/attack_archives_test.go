// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/wherryproject/wherry/internal/ociimage"
	"github.com/wherryproject/wherry/test/images"
)

// attackArchives: A32. Each image is imported and run, or refused: nothing of the machine's is written, removed or read by it.
func (k *kit) attackArchives(h *hoard) {
	up := strings.Repeat("../", 12)
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755} }
	link := func(name, to string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}
	}
	hard := func(name, to string) tar.Header {
		return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to, Mode: 0o755}
	}
	in := strings.TrimPrefix(h.dir, "/")
	for name, layers := range map[string][][]tar.Header{
		"dots":             {{file(up + in + "/new")}},
		"dots-within":      {{file("a/" + up + in + "/new")}},
		"absolute":         {{file(h.dir + "/new")}},
		"link":             {{link("esc", h.dir), file("esc/new")}},
		"link-below":       {{link("esc", h.dir)}, {file("esc/new")}},
		"link-up":          {{link("esc", up+in)}, {file("esc/new")}},
		"links":            {{link("a", "/"), link("esc", "a"+h.dir)}, {file("esc/new"), file("a" + h.dir + "/new")}},
		"hard":             {{hard("hl", up+in+"/secret")}},
		"hard-absolute":    {{hard("hl", h.secret)}},
		"hard-by-link":     {{link("esc", h.dir), hard("hl", "esc/secret")}},
		"hard-below":       {{link("esc", h.dir)}, {hard("hl", "esc/secret")}},
		"whiteout":         {{file(".wh...")}, {file("a/.wh..")}, {file(".wh..wh..opq")}, {file(".wh.")}},
		"whiteout-by-link": {{link("esc", h.dir)}, {file("esc/.wh.secret")}},
		"opaque-by-link":   {{link("esc", h.dir)}, {file("esc/.wh..wh..opq")}},
		"whiteout-up":      {{file(up + in + "/.wh.secret")}},
		"devices": {{{Typeflag: tar.TypeBlock, Name: "disk", Mode: 0o666, Devmajor: 254}, {Typeflag: tar.TypeBlock, Name: "disk2", Mode: 0o666, Devmajor: 8},
			{Typeflag: tar.TypeChar, Name: "mem", Mode: 0o666, Devmajor: 1, Devminor: 1}}},
	} {
		img, ref := k.World.Images[images.BusyboxRef], "evil.test/"+name+":1"
		for _, entries := range layers {
			layer, err := layerOf(entries...)
			k.must(err)
			img, err = mutate.AppendLayers(img, layer)
			k.must(err)
		}
		if !k.taken(ref, img) {
			continue
		}
		var out, errs bytes.Buffer
		script := "for f in /hl /esc/secret /disk /disk2 /mem; do test -e $f && head -c 100 $f && echo read $f; done; echo evil > /esc/new; true"
		_, err := k.start("links", imageExec{image: ref, command: []string{"sh", "-c", script}, stdout: &out, stderr: &errs, ctx: k.ctx()})
		h.hidden(name, out.String(), errs.String(), fmt.Sprint(err))
		if name == "devices" && (err != nil || strings.Contains(out.String(), "read /")) {
			k.t.Errorf("devices of an image: %q, %v", out.String(), err)
		}
		h.untouched()
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range map[string]string{up + in + "/new": "x", h.dir + "/new": "x",
		"manifest.json": fmt.Sprintf(`[{"Config":%q,"RepoTags":["evil.test/outside:1"],"Layers":[%q]}]`, up+in+"/secret", h.secret)} {
		k.must(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: 0o644}))
		_, err := w.Write([]byte(text))
		k.must(err)
	}
	k.must(w.Close())
	archive := filepath.Join(k.t.TempDir(), "outside.tar")
	k.must(os.WriteFile(archive, b.Bytes(), 0o644))
	said, err := k.Wherry(k.ctx(), "image", "import", archive).CombinedOutput()
	if err == nil {
		k.t.Errorf("an archive with names outside of it was imported: %s", said)
	}
	h.hidden("its import", string(said))
	h.untouched()
}

// taken tells whether the server imports an image.
func (k *kit) taken(ref string, img v1.Image) bool {
	k.t.Helper()
	archive := filepath.Join(k.t.TempDir(), "image.tar")
	f, err := os.Create(archive)
	k.must(err)
	defer f.Close()
	k.must(ociimage.WriteTar(f, img, ref))
	out, err := k.Wherry(k.ctx(), "image", "import", archive).CombinedOutput()
	if err != nil {
		k.t.Logf("%s is not imported: %s", ref, out)
	}
	return err == nil
}
