// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func files(pairs ...string) payload {
	p := payload{}
	for i := 0; i < len(pairs); i += 2 {
		p[pairs[i]] = file{data: []byte(pairs[i+1]), mode: 0o644}
	}
	return p
}

func write(t *testing.T, dir string, p payload) bool {
	t.Helper()
	changed, err := writeAll(dir, p, nil, time.Date(2026, 11, 5, 9, 30, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// TestWriteAll proves PL-05: the layout, what changes and what does not.
func TestWriteAll(t *testing.T) {
	dir := t.TempDir()
	if !write(t, dir, files("a", "1", "d/b", "2", "d/e/c", "3")) {
		t.Error("the first write changes nothing?")
	}
	wantFiles(t, dir, "a 0644 1", "d/b 0644 2", "d/e/c 0644 3")
	version, err := os.Readlink(filepath.Join(dir, "..data"))
	if err != nil || !strings.HasPrefix(version, "..2026_11_05_09_30_00.") {
		t.Error(version, err)
	}
	if write(t, dir, files("a", "1", "d/b", "2", "d/e/c", "3")) {
		t.Error("the same again is no change")
	}
	for i, p := range []payload{files("a", "1", "d/b", "2"), files("a", "1", "d", "2"), files("a", "x", "d", "2"), {"a": {data: []byte("x"), mode: 0o600}}, {}, files("z", "")} {
		if !write(t, dir, p) {
			t.Errorf("change %d is not seen", i)
		}
		if got := len(seen(t, dir)); got != len(p) {
			t.Errorf("change %d: %q", i, seen(t, dir))
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 2+len(p.tops()) {
			t.Errorf("change %d left something: %v, %v", i, entries, err)
		}
	}
}

// TestWriteAllAfterCrash proves PL-05: whatever a crash left behind is put right, without a change that is none.
func TestWriteAllAfterCrash(t *testing.T) {
	before, after := files("a", "1", "b", "2"), files("a", "one", "c", "3")
	for name, crash := range map[string]func(t *testing.T, dir string){
		"while a version is written": func(t *testing.T, dir string) {
			mkdir(t, dir, "..2026_11_05_09_31_00.1")
			put(t, dir, "..2026_11_05_09_31_00.1/a", "on")
		},
		"before ..data is replaced": func(t *testing.T, dir string) {
			if _, err := after.writeVersion(dir, nil, time.Now()); err != nil {
				t.Fatal(err)
			}
			link(t, dir, "..link_tmp", "..x")
		},
		"before the links": func(t *testing.T, dir string) {
			v, err := after.writeVersion(dir, nil, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if err := relink(dir, shown, v); err != nil {
				t.Fatal(err)
			}
		},
		"before the sweep": func(t *testing.T, dir string) { link(t, dir, "old", "..data/old") },
		"power cut, ..data to nowhere": func(t *testing.T, dir string) {
			if err := relink(dir, shown, "..gone"); err != nil {
				t.Fatal(err)
			}
		},
		"power cut, a file lost its contents": func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, "a"), 0); err != nil {
				t.Fatal(err)
			}
		},
		"power cut, a file is gone": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "..data/a")); err != nil {
				t.Fatal(err)
			}
		},
		"a subPath made a folder": func(t *testing.T, dir string) { mkdir(t, dir, "c") },
	} {
		for _, next := range []payload{before, after} {
			t.Run("PL-05 "+name, func(t *testing.T) {
				dir := t.TempDir()
				write(t, dir, before)
				crash(t, dir)
				write(t, dir, next)
				if write(t, dir, next) {
					t.Error("changed again")
				}
				if next["c"].data == nil {
					os.Remove(filepath.Join(dir, "c")) // the subPath's folder may stay
				}
				entries, err := os.ReadDir(dir)
				if err != nil || len(entries) != 4 {
					t.Errorf("%v, %v", entries, err)
				}
				if next["c"].data == nil {
					wantFiles(t, dir, "a 0644 1", "b 0644 2")
				} else {
					wantFiles(t, dir, "a 0644 one", "c 0644 3")
				}
			})
		}
	}
}

// TestReaders proves PL-05: who reads several files through ..data sees all of one version.
func TestReaders(t *testing.T) {
	dir := t.TempDir()
	version := func(i int) payload { return files("a", fmt.Sprint(i), "d/b", fmt.Sprint(i)) }
	write(t, dir, version(0))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	whole := 0
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			at, err := filepath.EvalSymlinks(filepath.Join(dir, "..data"))
			if err != nil {
				continue // replaced between two steps of ours
			}
			a, err1 := os.ReadFile(filepath.Join(at, "a"))
			b, err2 := os.ReadFile(filepath.Join(at, "d/b"))
			if err1 != nil || err2 != nil {
				continue // this version went away
			}
			whole++
			if string(a) != string(b) {
				t.Errorf("half of %s and half of %s", a, b)
				return
			}
		}
	})
	for i := range 300 {
		write(t, dir, version(i+1))
	}
	close(stop)
	wg.Wait()
	if whole == 0 {
		t.Error("nothing was read")
	}
}

// TestPayloadPaths proves PL-05: no path of an item leads out of the volume or into its machinery.
func TestPayloadPaths(t *testing.T) {
	for _, bad := range []string{"", "/a", "..", "../a", "a/../../b", "a/..", "..data", "..2026/x", "."} {
		if err := (payload{}).add(bad, file{}); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	for _, good := range []string{"a", ".hidden", "a/b", "a..b", "a/..b"} {
		if err := (payload{}).add(good, file{}); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	if err := files("a", "", "a/b", "").check(); err == nil || !strings.Contains(err.Error(), `"a" is also the folder of "a/b"`) {
		t.Error(err)
	}
}

func mkdir(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, dir, name, data string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, dir, name, target string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}
