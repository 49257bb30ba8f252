// SPDX-License-Identifier: Apache-2.0

package copyfiles

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"
)

type member struct {
	name, text string
	records    map[string]string
}

// archiveOf is an archive as cp-pack makes one.
func archiveOf(t *testing.T, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Mode: 0o644, Size: int64(len(m.text)), ModTime: time.Unix(5, 7), Format: tar.FormatPAX,
			Typeflag: tar.TypeReg, PAXRecords: m.records}
		if strings.HasSuffix(m.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// restOf is what comes of members after a place, as the toolbox makes it.
func restOf(t *testing.T, after string, members []member) []byte {
	t.Helper()
	if after == "" {
		return archiveOf(t, members...)
	}
	parts := strings.SplitN(after, ":", 4)
	offset, err := strconv.Atoi(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range members {
		if strings.TrimSuffix(m.name, "/") != parts[3] {
			continue
		}
		if offset == len(m.text) {
			return archiveOf(t, members[i+1:]...)
		}
		m.records = map[string]string{offsetRecord: parts[0]}
		return archiveOf(t, append([]member{m}, members[i+1:]...)...)
	}
	t.Fatalf("there is no %s", after)
	return nil
}

// A copy to standard output that is cut anywhere is one archive in the end, the same as without the cut. (DA-09)
func TestPass(t *testing.T) {
	members := []member{{name: "d/"}, {name: "d/a", text: strings.Repeat("a", 700)}, {name: "d/empty"}, {name: "d/b", text: strings.Repeat("b", 512)},
		{name: "d/c", text: "c"}}
	whole := archiveOf(t, members...)
	for at := 0; at <= len(whole); at += 37 {
		var got bytes.Buffer
		p := NewPasser(&got)
		err := p.From(io.MultiReader(bytes.NewReader(whole[:at]), errorReader{}))
		if err == nil && at < len(whole)-1024 || err != nil && !Cut(err) {
			t.Fatalf("cut at %d: %v", at, err)
		}
		if err != nil {
			if err := p.From(bytes.NewReader(restOf(t, p.Reached().String(), members))); err != nil {
				t.Fatalf("cut at %d: %v", at, err)
			}
		}
		if !sameArchive(t, got.Bytes(), whole) {
			t.Errorf("cut at %d, after %s: another archive has come", at, p.Reached())
		}
	}
}

// errorReader is a line that is cut.
type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func sameArchive(t *testing.T, a, b []byte) bool {
	t.Helper()
	return listing(t, a) == listing(t, b)
}

func listing(t *testing.T, text []byte) string {
	var all strings.Builder
	r := tar.NewReader(bytes.NewReader(text))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all.String()
		}
		if err != nil {
			return all.String() + err.Error()
		}
		content, err := io.ReadAll(r)
		fmt.Fprintf(&all, "%s %d %v %s %v\n", h.Name, h.Size, h.ModTime, content, err)
	}
}

// What cannot be gone on with is said: a file that has changed, one with holes, the rest of another.
func TestPassRefuses(t *testing.T) {
	first := archiveOf(t, member{name: "a", text: strings.Repeat("a", 2000)})
	for want, second := range map[string][]byte{
		"a has changed":   archiveOf(t, member{name: "a", text: strings.Repeat("x", 2000)}),
		"has changed":     archiveOf(t),
		"changed while":   archiveOf(t, member{name: "b", text: "b"}),
		"stream is damag": bytes.Repeat([]byte("x"), 2048),
	} {
		p := NewPasser(io.Discard)
		if err := p.From(bytes.NewReader(first[:len(first)-2500])); !Cut(err) {
			t.Fatalf("not cut: %v", err)
		}
		if err := p.From(bytes.NewReader(second)); err == nil || Cut(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	p := NewPasser(io.Discard)
	rest := archiveOf(t, member{name: "a", text: "aa", records: map[string]string{offsetRecord: "1"}})
	if err := p.From(bytes.NewReader(rest)); err == nil || !strings.Contains(err.Error(), "rest of a file that is whole") {
		t.Errorf("a rest first: %v", err)
	}
	p.within = &within{Reached: Reached{name: "a", offset: 1, size: 2}, sparse: true}
	if err := p.From(bytes.NewReader(rest)); err == nil || !strings.Contains(err.Error(), "copy it into a folder") {
		t.Errorf("with holes: %v", err)
	}
}
