// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/zstd"
)

func clock() func() time.Time {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	return func() time.Time { now = now.Add(time.Second); return now }
}

// archive makes a tar archive of files, and of a link.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: 0o644}
		if to, link := strings.CutPrefix(text, "-> "); link {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, to, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const somePod = `
metadata: {name: web, namespace: shop}
status:
  phase: Running
  conditions: [{type: Ready, status: "False", message: "containers with unready status: [main]"}, {type: PodScheduled, status: "True"}]
  containerStatuses:
  - {name: main, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 139, reason: Error}}}
`

// DA-12: a bundle has what was added, within its limits, and says what it lacks and why; it can be looked into and read back whole.
func TestBundle(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, Manifest{Target: "pod shop/web", Version: "v1"}, 10_000, clock())
	if err != nil {
		t.Fatal(err)
	}
	w.Describe(func(m *Manifest) { m.Node = "edge" })
	w.Miss("timeline", errors.New("the server has none"))
	procs := archive(t, map[string]string{"proc/7/status": "Name:\tapp\nState:\tS (sleeping)\nVmRSS:\t 2048 kB\n", "proc/7/cmdline": "app\x00--port\x0080\x00",
		"net/tcp": "sl\n", "./empty": "", "net/none/x": "x", "link": "-> /etc/passwd", "../out": "evil", strings.Repeat("n", 5000): "x"})
	cut := archive(t, map[string]string{"data": strings.Repeat("x", 900)})
	pack := func(folder string, archive []byte) error {
		broken, err := w.Archive(folder, "net/none/", bytes.NewReader(archive))
		if (broken != nil) != (len(archive) == 1000) {
			t.Errorf("%s: %v", folder, broken)
		}
		return err
	}
	for _, err := range []error{w.Text(PodFile, []byte(somePod)), w.Text("empty", nil), w.Text(Logs+"/main.log", []byte("one\ntwo\nthree\nfour\nfive\nlast words\n")),
		pack(Containers+"/main", procs), pack(Containers+"/main/files", cut[:1000]),
		w.JSON("bad.json", func() {}), w.Text("large", bytes.Repeat([]byte("y"), 20_000)), w.Text("later", []byte("z")),
		pack("more", cut)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	m, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]Part{}
	total := int64(0)
	for _, p := range m.Parts {
		parts[p.Name] = p
		total += p.Bytes
	}
	if total != 10_000 || !parts["large"].Cut || !parts[Containers+"/main/files/data"].Cut || parts[PodFile].Cut || parts[PodFile].Bytes != int64(len(somePod)) {
		t.Errorf("%d bytes: %+v", total, m.Parts)
	}
	for _, name := range []string{"x", "empty", "out"} { // without a prefix, also of what has nothing in it; ".." leads nowhere
		if _, ok := parts[Containers+"/main/"+name]; !ok {
			t.Errorf("%s is missing: %+v", name, m.Parts)
		}
	}
	var missing []string
	for _, miss := range m.Missing {
		missing = append(missing, miss.What+": "+miss.Why)
	}
	text := strings.Join(missing, "\n")
	for _, want := range []string{"timeline: the server has none", "main/link: it is a link to \"/etc/passwd\"", "data: it ends after", "bad.json: ", "its name is too long",
		"later, and 1 after it: the bundle has reached its limit"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not said to be missing:\n%s", want, text)
		}
	}
	b, err := Read(bytes.NewReader(out.Bytes()), Wanted)
	if err != nil {
		t.Fatal(err)
	}
	got := Summary(b)
	for _, want := range []string{"pod shop/web, captured 2026-11-27T12:00:01Z", "on node edge", "phase Running", "not Ready: containers with unready",
		"main   waiting: CrashLoopBackOff   4 restarts   before: ended with 139 (Error), SIGSEGV", "  two\n  three\n  four\n  five\n  last words\n",
		"PROCESSES (1)\n  main   7   S   2048 KiB   app --port 80\n", "containers/main/proc/", "2 files", "NOT IN IT", "timeline: the server has none"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not told:\n%s", want, got)
		}
	}
	var one bytes.Buffer
	if err := Open(bytes.NewReader(out.Bytes()), Containers+"/main/net/tcp", &one); err != nil || one.String() != "sl\n" {
		t.Errorf("%q, %v", one.String(), err)
	}
	if err := Open(bytes.NewReader(out.Bytes()), "none", &one); err == nil || !strings.Contains(err.Error(), "--list") {
		t.Error(err)
	}
	for _, n := range []int{0, 10, out.Len() / 2, out.Len() - 20} {
		if b, err := Read(bytes.NewReader(out.Bytes()[:n]), Wanted); err == nil {
			t.Errorf("cut to %d bytes it is %+v", n, b.Manifest)
		}
	}
}

// DA-12: a disk that is full, or a pipe that is cut, is an error of the capture and no missing part.
func TestBrokenPipe(t *testing.T) {
	r, p := io.Pipe()
	cut := errors.New("the pipe is cut")
	_ = r.CloseWithError(cut)
	w, err := NewWriter(p, Manifest{}, 1<<30, clock())
	if err != nil {
		t.Fatal(err)
	}
	big := archive(t, map[string]string{"data": strings.Repeat("0123456789", 1_000_000)})
	_, err = w.Archive("a", "", bytes.NewReader(big))
	if _, cerr := w.Close(); !errors.Is(errors.Join(err, cerr), cut) {
		t.Errorf("%v, %v", err, cerr)
	}
}

// DA-12: values of environment variables stay out of a bundle, wherever an object has them.
func TestMask(t *testing.T) {
	container := map[string]any{"name": "c", "env": []any{map[string]any{"name": "PASSWORD", "value": "hidden"},
		map[string]any{"name": "FROM", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "s"}}}, map[string]any{"name": "EMPTY", "value": ""}}}
	object := map[string]any{"metadata": map[string]any{"annotations": map[string]any{applied: "hidden", "other": "stays"}},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{container}}}}}
	Mask(object)
	env := container["env"].([]any)
	if env[0].(map[string]any)["value"] != LeftOut || env[1].(map[string]any)["valueFrom"] == nil || env[2].(map[string]any)["value"] != "" {
		t.Errorf("%v", env)
	}
	if a := object["metadata"].(map[string]any)["annotations"].(map[string]any); a[applied] != LeftOut || a["other"] != "stays" {
		t.Errorf("%v", a)
	}
	headers := []any{map[string]any{"name": "Authorization", "value": "hidden"}}
	Mask(map[string]any{"livenessProbe": map[string]any{"httpGet": map[string]any{"httpHeaders": headers}}})
	if headers[0].(map[string]any)["value"] != LeftOut {
		t.Errorf("%v", headers)
	}
	Mask("nothing")
	Mask(map[string]any{"env": "not a list", "annotations": 3})
}

// FuzzRead reads bundles, which may come from anybody: whatever is in one, it ends, and is told or refused.
func FuzzRead(f *testing.F) {
	var out bytes.Buffer
	w, err := NewWriter(&out, Manifest{Target: "pod a/b"}, 1000, clock())
	if err != nil {
		f.Fatal(err)
	}
	_ = w.Text(PodFile, []byte(somePod)) // into memory
	if _, err := w.Close(); err != nil {
		f.Fatal(err)
	}
	z, err := zstd.NewReader(bytes.NewReader(out.Bytes()))
	if err != nil {
		f.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		f.Fatal(err)
	}
	z.Close()
	f.Add(plain)
	f.Add([]byte("no archive"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var packed bytes.Buffer
		z, err := zstd.NewWriter(&packed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if b, err := Read(&packed, Wanted); err == nil && Summary(b) == "" {
			t.Error("a bundle of which nothing is told")
		}
		_, _ = Read(bytes.NewReader(data), Wanted)
	})
}

// DA-12: what a container has many of, or large ones, does not make its bundle one that cannot be shown.
func TestManyAndLarge(t *testing.T) {
	files := map[string]string{}
	for i := range 20_000 {
		files[fmt.Sprintf("files/%064d", i)] = "x"
	}
	for i := range 80 {
		files[fmt.Sprintf("proc/%d/status", i)] = "Name:\tx\n"
		files[fmt.Sprintf("proc/%d/cmdline", i)] = strings.Repeat("a", 1<<20)
	}
	var out bytes.Buffer
	w, err := NewWriter(&out, Manifest{Target: "pod a/b\nNOT IN IT\n"}, 1<<40, clock())
	if err != nil {
		t.Fatal(err)
	}
	if broken, err := w.Archive(Containers+"/c", "", bytes.NewReader(archive(t, files))); broken != nil || err != nil {
		t.Fatal(broken, err)
	}
	w.Miss("a\nb", errors.New("c\x1b[2J\nd"))
	for range 2 * mostMissing {
		w.Miss(strings.Repeat("n", 1<<16), errors.New(strings.Repeat("w", 1<<16)))
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := Read(bytes.NewReader(out.Bytes()), Wanted)
	if err != nil || len(b.Manifest.Parts) != 20_160 {
		t.Fatalf("%d parts, %v", len(b.Manifest.Parts), err)
	}
	if n := len(b.Manifest.Missing); n != mostMissing+1 || b.Manifest.Missing[n-1].What != "10001 more" || len(b.Manifest.Missing[n-2].Why) != mostWords {
		t.Errorf("%d are missing, the last %+v", n, b.Manifest.Missing[n-1])
	}
	got := Summary(b)
	if len(got) > 256<<10 || strings.Contains(got, "\x1b") || strings.Count(got, "\nNOT IN IT\n") != 1 || !strings.Contains(got, "  a b: c [2J d\n") {
		t.Errorf("%d bytes: %.3000s", len(got), got)
	}
}

// DA-12: of a log that is too long the end is kept, and it is said that it was cut.
func TestEnd(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, Manifest{}, 1<<30, clock())
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("0123456789", 100_000) + "THE END"
	gone := errors.New("the server is gone")
	for name, from := range map[string]io.Reader{"long": strings.NewReader(long), "short": strings.NewReader("all"), "broken": io.MultiReader(strings.NewReader("part"), iotest.ErrReader(gone))} {
		broken, err := w.End(name, from, 1000)
		if err != nil || errors.Is(broken, gone) != (name == "broken") {
			t.Errorf("%s: %v, %v", name, broken, err)
		}
	}
	m, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Parts {
		if want := map[string]int64{"long": 1000, "short": 3, "broken": 4}[p.Name]; p.Bytes != want || p.Cut != (p.Name == "long") {
			t.Errorf("%+v", p)
		}
	}
	var end bytes.Buffer
	if err := Open(&out, "long", &end); err != nil || !strings.HasSuffix(end.String(), "9THE END") {
		t.Errorf("%q, %v", end.String(), err)
	}
}

// DA-12: a few bytes that promise terabytes are refused, as what names no format is.
func TestHostile(t *testing.T) {
	pack := func(h tar.Header, text string) []byte {
		var b, packed bytes.Buffer
		w := tar.NewWriter(&b)
		h.Size = int64(len(text))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		z, err := zstd.NewWriter(&packed)
		if err != nil {
			t.Fatal(err)
		}
		// tar does not write such a record itself
		if _, err := z.Write(bytes.ReplaceAll(b.Bytes(), []byte("XNU.sparse"), []byte("GNU.sparse"))); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return packed.Bytes()
	}
	for name, c := range map[string]struct {
		bundle []byte
		want   string
	}{
		"holes":     {pack(tar.Header{Typeflag: tar.TypeReg, Name: "x", PAXRecords: map[string]string{"XNU.sparse.realsize": "9000000000000"}}, "x"), "has holes"},
		"no format": {pack(tar.Header{Typeflag: tar.TypeReg, Name: ManifestName}, "{}"), "names no format"},
		"newer":     {pack(tar.Header{Typeflag: tar.TypeReg, Name: ManifestName}, `{"format":9}`), "use a newer one"},
		"a link":    {pack(tar.Header{Typeflag: tar.TypeSymlink, Name: "x", Linkname: "/etc/passwd"}, ""), "not a bundle"},
	} {
		if b, err := Read(bytes.NewReader(c.bundle), Wanted); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
}
