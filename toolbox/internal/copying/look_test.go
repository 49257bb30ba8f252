// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// askLook is what cp-look answers to lines about the roots in a folder.
func askLook(t *testing.T, base string, questions ...string) []answer {
	t.Helper()
	var out bytes.Buffer
	l := &looker{base: base, in: bufio.NewReader(strings.NewReader(strings.Join(questions, "\n") + "\n")),
		out: json.NewEncoder(&out), sent: func() error { return nil }}
	if err := l.serve(); err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
	var all []answer
	for d := json.NewDecoder(&out); ; {
		var a answer
		err := d.Decode(&a)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
}

func names(list []entry) (out []string) {
	for _, e := range list {
		out = append(out, e.Kind+" "+e.Name)
	}
	return out
}

// UI-06: names may be any bytes, and come as they are; links are told of, and whether they lead to a folder in the
// root.
func TestLookList(t *testing.T) {
	base, root := world(t)
	odd := "a\nb\x1b[31m\xff%41 ü"
	if err := os.WriteFile(filepath.Join(root, "data", odd), []byte("odd"), 0o640); err != nil {
		t.Fatal(err)
	}
	a := askLook(t, base, `{"do":"list","root":"root","path":"/link"}`, `{"do":"list","root":"root","path":"/data/up"}`,
		`{"do":"read","root":"root","path":"/data/a%0Ab%1B%5B31m%FF%2541%20%C3%BC"}`)
	want := "f a%0Ab%1B%5B31m%FF%2541%20%C3%BC, l abs, l file, l in, f old, d sub, l up"
	if got := strings.Join(names(a[0].Files), ", "); got != want {
		t.Errorf("the folder has %s, want %s", got, want)
	}
	for _, e := range a[0].Files {
		if leads := e.Name == "in" || e.Name == "sub"; e.Folder != leads {
			t.Errorf("%s leads to a folder: %v", e.Name, e.Folder)
		}
	}
	if !strings.Contains(a[1].Error, "no such file") {
		t.Errorf("a link that leads out of the root: %+v", a[1])
	}
	if string(a[2].Data) != "odd" || a[2].File.Mode != 0o640 || !a[2].End {
		t.Errorf("the odd file: %+v", a[2])
	}
}

// UI-06: nothing outside of a root is shown, whatever is asked for; and what is no file is not opened.
func TestLookStaysInside(t *testing.T) {
	base, root := world(t)
	if err := unix.Mkfifo(filepath.Join(root, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{
		`{"do":"read","root":"root","path":"/../outside/secret"}`,
		`{"do":"read","root":"root","path":"/..%2Foutside%2Fsecret"}`,
		`{"do":"read","root":"root","path":"/data/file"}`, `{"do":"read","root":"root","path":"/data/up/secret"}`,
		`{"do":"send","root":"../outside","path":"/secret"}`, `{"do":"read","root":".","path":"/outside/secret"}`,
		`{"do":"read","root":"..","path":"/x"}`, `{"do":"read","root":"","path":"/outside/secret"}`,
		`{"do":"read","root":"root","path":"/pipe"}`, `{"do":"read","root":"root","path":"/%00"}`,
		`{"do":"read","root":"root","path":"/%zz"}`, `{"do":"list","root":"nobody","path":"/"}`, `{"do":"frobnicate"}`,
		`{"do":"pack","root":"root","path":"/no"}`, `{"do":"compare","root":"root","path":"/"}`,
		`{"do":"changed","root":"root","path":"/"}`,
		`{"do":"put","root":"root","path":"/data","name":"..%2Fx","size":0}`,
		`{"do":"put","root":"root","path":"/data","name":"","size":0}`,
		`{"do":"put","root":"root","path":"/data","name":"%2Fx","size":0}`,
	} {
		if a := askLook(t, base, q); len(a) != 1 || a[0].Error == "" || a[0].End {
			t.Errorf("%s: %+v", q, a)
		}
	}
}

// UI-06: a file and a folder come whole; a folder as an archive, with what could not be packed told.
func TestLookSends(t *testing.T) {
	base, root := world(t)
	long := bytes.Repeat([]byte("0123456789abcdef"), 3*piece/16)
	if err := os.WriteFile(filepath.Join(root, "data/sub/long"), long, 0o600); err != nil {
		t.Fatal(err)
	}
	var got []byte
	answers := askLook(t, base, `{"do":"send","root":"root","path":"/data/sub/long"}`)
	for _, a := range answers {
		got = append(got, a.Data...)
	}
	if !bytes.Equal(got, long) || answers[0].File.Size != int64(len(long)) || !answers[len(answers)-1].End {
		t.Errorf("%d bytes came of %d, in %d lines", len(got), len(long), len(answers))
	}
	for path, want := range map[string]string{"/data/sub": fmt.Sprintf("sub/ 0, sub/long %d", len(long)),
		"/data/in": "in/ 0, in/passwd 4"} {
		if s := archiveOf(t, base, path); s != want {
			t.Errorf("the archive of %s has %s", path, s)
		}
	}
}

// archiveOf is what the archive of a path has.
func archiveOf(t *testing.T, base, path string) string {
	t.Helper()
	var got []byte
	for _, a := range askLook(t, base, `{"do":"pack","root":"root","path":"`+path+`"}`) {
		got = append(got, a.Data...)
	}
	var list []string
	for r := tar.NewReader(bytes.NewReader(got)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return strings.Join(list, ", ")
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s %d", h.Name, h.Size))
	}
}

// UI-06: a file with a time that JSON has none for is listed as the others of its folder.
func TestLookListsOddTimes(t *testing.T) {
	base, err := os.MkdirTemp("/dev/shm", "wherry-") // a file system that keeps such times
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	late := time.Date(11476, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := errorsOf(os.Mkdir(filepath.Join(base, "root"), 0o755),
		os.WriteFile(filepath.Join(base, "root/late"), nil, 0o644),
		os.WriteFile(filepath.Join(base, "root/other"), nil, 0o644),
		os.Chtimes(filepath.Join(base, "root/late"), late, late)); err != nil {
		t.Fatal(err)
	}
	a := askLook(t, base, `{"do":"list","root":"root","path":"/"}`, `{"do":"read","root":"root","path":"/late"}`)
	if s := strings.Join(names(a[0].Files), ", "); s != "f late, f other" || !a[1].End {
		t.Errorf("%+v", a)
	}
}

// UI-06: what is too deep to be looked at is said, and no folder on the way is called changed for it.
func TestLookSaysWhatIsTooDeep(t *testing.T) {
	base, root := world(t)
	deep := filepath.Join(root, "data", strings.Repeat("d/", mostDeep+2))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	a := askLook(t, base, `{"do":"changed","root":"root","path":"/data","since":"2001-01-01T00:00:00Z"}`)
	if len(a[0].Notes) != 1 || !strings.Contains(a[0].Notes[0], "too deep") {
		t.Errorf("notes %q", a[0].Notes)
	}
	for _, e := range a[0].Files {
		if e.Kind == "d" && strings.HasPrefix(e.Name, "d") {
			t.Errorf("%s is called changed", e.Name)
		}
	}
}

// UI-06: a file is there when all of it has come, with the mode of the one it takes the place of; else the old one
// stays.
func TestLookPuts(t *testing.T) {
	base, root := world(t)
	old := filepath.Join(root, "data/old")
	if err := os.Chmod(old, 0o751); err != nil {
		t.Fatal(err)
	}
	data := func(text string) string { return `{"data":"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"}` }
	put := `{"do":"put","root":"root","path":"/data","name":"old","size":5,"over":true}`
	unasked := strings.Replace(put, "true", "false", 1)
	for _, cut := range [][]string{{unasked, data("abcde")}, {put}, {put, data("ab")}, {put, data("abcdef")},
		{put, `{"do":"list"}`}} {
		if a := askLook(t, base, cut...); a[len(a)-1].Error == "" {
			t.Errorf("%q: %+v", cut, a)
		}
		if text, err := os.ReadFile(old); string(text) != "old" {
			t.Fatalf("after %q the file has %q, %v", cut, text, err)
		}
	}
	a := askLook(t, base, put, data("ab"), data("cde"), `{"do":"read","root":"root","path":"/data/old"}`,
		`{"do":"put","root":"root","path":"/data","name":"empty%0A","size":0}`,
		`{"do":"read","root":"root","path":"/data/empty%0A"}`)
	if *a[0].Got != 0 || *a[1].Got != 2 || !a[2].End || string(a[3].Data) != "abcde" || a[3].File.Mode != 0o751 ||
		!a[4].End || !a[5].End {
		t.Errorf("%+v", a)
	}
	if left, _ := filepath.Glob(filepath.Join(root, "data", ".*")); len(left) > 0 {
		t.Errorf("there is left: %q", left)
	}
}

// UI-06: two folders are compared by what is in their files, not by times.
func TestLookCompares(t *testing.T) {
	base := t.TempDir()
	for name, text := range map[string]string{
		"one/same": "x", "two/same": "x", "one/other": "abc", "two/other": "abd", "one/gone/deep": "", "two/new": "",
		"one/mode": "", "two/mode": "", "one/sub/longer": "1", "two/sub/longer": "12", "one/kind": "",
		"two/kind/file": "", "one/proc/1": "a", "two/proc/1": "b",
	} {
		file := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(base, "two/mode"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, to := range []string{"a", "b"} {
		if err := os.Symlink(to, filepath.Join(base, []string{"one", "two"}[i], "link")); err != nil {
			t.Fatal(err)
		}
	}
	a := askLook(t, base, `{"do":"compare","root":"one","path":"/","with":{"root":"two","path":"/"}}`)
	var got []string
	for _, d := range a[0].Differ {
		which := "both"
		if d.Two == nil {
			which = "one"
		} else if d.One == nil {
			which = "two"
		}
		got = append(got, strings.TrimSpace(d.Name+" "+which+" "+strings.Join(d.How, "+")))
	}
	want := "gone one, kind both kind, link both target, mode both mode, new two, other both contents, sub/longer both contents"
	if s := strings.Join(got, ", "); s != want || a[0].More != "" || !a[0].End {
		t.Errorf("%s, want %s (%+v)", s, want, a[0])
	}
}

// UI-06: what was written since a time is told by the time that no program can set; a folder, if something in it is
// gone.
func TestLookChanged(t *testing.T) {
	base, root := world(t)
	if err := os.WriteFile(filepath.Join(root, "etc/gone"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var then unix.Stat_t
	for { // the clock of files has to go on
		probe := filepath.Join(base, "probe")
		if err := os.WriteFile(probe, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		var first unix.Stat_t
		if err := errorsOf(unix.Stat(probe, &then), unix.Stat(filepath.Join(root, "etc"), &first)); err != nil {
			t.Fatal(err)
		}
		if time.Unix(then.Ctim.Unix()).Sub(time.Unix(first.Ctim.Unix())) > 3*tick {
			break
		}
	}
	since := time.Unix(then.Ctim.Unix())
	aged := since.Add(-24 * time.Hour)
	if err := errorsOf(os.WriteFile(filepath.Join(root, "data/sub/new"), nil, 0o644),
		os.Chtimes(filepath.Join(root, "data/sub/new"), aged, aged),
		os.Remove(filepath.Join(root, "etc/gone"))); err != nil {
		t.Fatal(err)
	}
	q := `{"do":"changed","root":"root","path":"/","since":"` + since.UTC().Format(time.RFC3339Nano) + `"}`
	known := filepath.Join(base, ".wherry", "root")
	if err := errorsOf(os.MkdirAll(known, 0o755), os.WriteFile(filepath.Join(known, "status.json"),
		[]byte(`{"attempt":3,"state":"exited","createdAt":"`+since.UTC().Format(time.RFC3339Nano)+`"}`),
		0o644)); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{q, `{"do":"changed","root":"root","path":"/"}`} {
		if a := askLook(t, base, q); strings.Join(names(a[0].Files), ", ") != "f data/sub/new, d etc" || !a[0].End {
			t.Errorf("%s: %+v", q, a)
		}
	}
	if a := askLook(t, base, `{"do":"containers"}`); a[0].Runs["root"].Attempt != 3 || len(a[0].Files) != 2 {
		t.Errorf("%+v", a)
	}
}

// UI-06: what of the image's is gone from a container is told, wherever it was, and once: a file, a folder as a whole, and
// what was in a folder that was made anew; the image's own version is there to be listed and read, and not to be written.
func TestLookGone(t *testing.T) {
	base, root := world(t)
	image := filepath.Join(base, ".wherry", "root", "image")
	since := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano)
	for _, dir := range []string{"etc", "data/sub", "old/deep", "usr/bin"} {
		if err := errorsOf(os.MkdirAll(filepath.Join(image, dir), 0o755), os.WriteFile(filepath.Join(image, dir, "was"),
			[]byte("the image's"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errorsOf(os.MkdirAll(filepath.Join(root, "usr/bin"), 0o755), os.WriteFile(filepath.Join(root, "usr/bin/was"), nil, 0o644),
		os.WriteFile(filepath.Join(root, "usr/bin/new"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	gone, known := map[string]bool{}, map[string]bool{}
	for _, e := range askLook(t, base, `{"do":"changed","root":"root","path":"/","since":"`+since+`"}`)[0].Files {
		gone[e.Name], known[e.Name] = e.Gone, e.Image
	}
	for name, want := range map[string]bool{"etc/was": true, "data/sub/was": true, "old": true, "usr/bin/was": false, "usr/bin/new": false} {
		if is, told := gone[name]; !told || is != want {
			t.Errorf("%s: gone %t, told %t", name, is, told)
		}
	}
	if _, told := gone["old/deep"]; told || !known["usr/bin/was"] || known["usr/bin/new"] {
		t.Errorf("%v, %v", gone, known)
	}
	if a := askLook(t, base, `{"do":"read","root":"root@image","path":"/old/deep/was"}`); string(a[0].Data) != "the image's" {
		t.Errorf("%+v", a)
	}
	if a := askLook(t, base, `{"do":"list","root":"root@image","path":"/old"}`); strings.Join(names(a[0].Files), ", ") != "d deep" {
		t.Errorf("%+v", a)
	}
	for _, q := range []string{`{"do":"put","root":"root@image","path":"/etc","name":"x","size":0}`, `{"do":"list","root":"@image","path":"/"}`,
		`{"do":"list","root":"..@image","path":"/"}`, `{"do":"list","root":"other@image","path":"/"}`} {
		if a := askLook(t, base, q); a[0].Error == "" {
			t.Errorf("%s: %+v", q, a)
		}
	}
	if _, err := os.Stat(filepath.Join(image, "etc/x")); !os.IsNotExist(err) {
		t.Errorf("a file was written into the image: %v", err)
	}
}

func errorsOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// FuzzLook asks anything: nothing of outside of the root is told, nothing there changes, and there is an end (ATTACK
// A16).
func FuzzLook(f *testing.F) {
	f.Add(`{"do":"read","root":"root","path":"/data/file"}`)
	f.Add(`{"do":"pack","root":"root","path":"/data/up/.."}` + "\n" + `{"do":"list","root":"root","path":"/%2e%2e"}`)
	f.Add(`{"do":"put","root":"root","path":"/data/up","name":"secret","size":1}` + "\n" + `{"data":"eA=="}`)
	f.Add(`{"do":"compare","root":"root","path":"/data/abs","with":{"root":"root","path":"/"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		dir, root := world(t)
		roots := filepath.Join(dir, "roots") // what is beside it is nobody's
		if err := errorsOf(os.Mkdir(roots, 0o755), os.Rename(root, filepath.Join(roots, "root"))); err != nil {
			t.Fatal(err)
		}
		before := picture(t, dir+"/outside")
		var out bytes.Buffer
		l := &looker{base: roots, in: bufio.NewReader(strings.NewReader(text)), out: json.NewEncoder(&out),
			sent: func() error { return nil }}
		_ = l.serve()
		if after := picture(t, dir+"/outside"); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
		if secret := base64.StdEncoding.EncodeToString([]byte("secret")); strings.Contains(out.String(), secret) {
			t.Errorf("what is outside is told:\n%s", out.String())
		}
	})
}
