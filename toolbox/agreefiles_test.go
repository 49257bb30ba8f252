// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// long is the length of a line that is longer than any buffer.
const long = 100_000

// contents are the files that each invocation of TestAgreesWithBusybox finds.
func contents() map[string]string {
	var bytes, many strings.Builder
	for i := range 256 {
		bytes.WriteByte(byte(i))
	}
	for i := range 300 {
		fmt.Fprintf(&many, "%d line %d\n", i*7919%300, i)
	}
	return map[string]string{
		"empty":      "",
		"lines":      "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve\n",
		"nonl":       "first\nsecond\nlast",
		"words":      "The quick  brown\tfox\n\n  jumps over the lazy dog.\nthe end\n\n\n\nTHE END\n",
		"numbers":    "10\n9\n2\n-1\n1e3\n 7\n0x1f\n10\n\n3.5\n+4\n.5\nten\n100\n",
		"fields":     "a:1:x\nb:20:y\nnofield\n::\nc:3:z:more\n:lead\ntrail:\n",
		"columns":    "carl 30 zeta\nanna 4 alpha\nbert 30 beta\nanna 12 gamma\n  dora 7 x\n",
		"dup":        "a\na\nA\nb\nb\nb\nc\na\n",
		"other":      "a\nb\nC\nc\n",
		"bytes":      bytes.String(),
		"nul":        "one\x00two\x00three\x00",
		"long":       strings.Repeat("x", long) + "\nend\n",
		"many":       many.String(),
		"utf8":       "déjà vu\n日本語\n\xff\xfe bad\nÄ\n",
		"crlf":       "a\r\nb\r\n",
		"tabs":       "a\tb\tc\n\td\n",
		"names":      "lines words\n'a file' \"b c\"\n\n  dir/a.c  x\\ y\n",
		"sums":       "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806  lines\nnonsense\n",
		"base64":     "aGVsbG8g\nd29ybGQK\n",
		"hex":        "00000000: 4142 430a                                ABC.\n",
		"plainhex":   "4142 430a\n44 45\n",
		"script.sh":  "#!/bin/sh\necho hello\n",
		"script.sed": "s/o/0/g\n2d\n",
		"script.awk": "{ n += length($1) }\nEND { print n }\n",
		"patterns":   "one\nt[wh]\n",
		"-dash":      "dash\n",
		"a file":     "blank\n",
		"dir/a.c":    "int main;\n",
		"dir/b.txt":  "one text\n",
		"dir/.hid":   "hidden one\n",
		"dir/sub/c":  "deep one\n",
		"old/x":      "old x\n",
	}
}

// furnish makes the folder in which an invocation is run: always the same, with times in 2020.
func furnish(dir string) error {
	var err error
	also := func(e error) { err = errors.Join(err, e) }
	for _, sub := range []string{"dir/sub", "old", "void"} {
		also(os.MkdirAll(filepath.Join(dir, sub), 0o755))
	}
	for name, text := range contents() {
		also(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	also(compressed(filepath.Join(dir, "packed.gz"), contents()["lines"]))
	also(os.Chmod(filepath.Join(dir, "script.sh"), 0o755))
	also(os.Chmod(filepath.Join(dir, "other"), 0o600))
	also(os.Symlink("lines", filepath.Join(dir, "link")))
	also(os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	also(os.Symlink("dir", filepath.Join(dir, "dirlink")))
	also(os.Symlink("../lines", filepath.Join(dir, "dir/up")))
	also(os.Symlink("round", filepath.Join(dir, "round")))
	also(os.Link(filepath.Join(dir, "dup"), filepath.Join(dir, "dup2")))
	at := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	var paths []string
	also(filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}))
	for i, path := range paths { // in the order of their names
		times := []unix.Timespec{unix.NsecToTimespec(at.UnixNano()), unix.NsecToTimespec(at.Add(time.Duration(i) * time.Hour).UnixNano())}
		also(unix.UtimesNanoAt(unix.AT_FDCWD, path, times, unix.AT_SYMLINK_NOFOLLOW))
	}
	return err
}

func compressed(path, text string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(f)
	_, err = z.Write([]byte(text))
	return errors.Join(err, z.Close(), f.Close())
}

func checksum(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:8]
}

// describe lists all that is in a folder, with all that commands change.
func describe(dir string) (map[string]string, error) {
	all := map[string]string{}
	return all, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		changed := "now"
		if at := time.Unix(st.Mtim.Unix()); at.Year() < 2025 {
			changed = at.UTC().Format(time.DateTime)
		}
		what := fmt.Sprintf("%v %d:%d %d links, %s", d.Type().String(), st.Uid, st.Gid, st.Nlink, changed)
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what += " -> " + to
		case d.Type().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += " " + brief(string(text))
		}
		all[strings.TrimPrefix(path, dir)] = fmt.Sprintf("%o %s", st.Mode&0o7777, what)
		return nil
	})
}

// changes words what is not in a folder as it was.
func changes(before, after map[string]string) string {
	var lines []string
	for path, text := range after {
		if before[path] != text {
			lines = append(lines, fmt.Sprintf("%s: %s", path, text))
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			lines = append(lines, path+" is gone")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}
