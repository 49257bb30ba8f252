// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// mounted is a line of /proc/self/mounts.
type mounted struct{ device, point, kind, options string }

func mounts() ([]mounted, error) {
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	plain := strings.NewReplacer("\\040", " ", "\\011", "\t", "\\012", "\n", "\\134", "\\")
	var out []mounted
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 4 {
			out = append(out, mounted{f[0], plain.Replace(f[1]), f[2], f[3]})
		}
	}
	return out, nil
}

func mount(c *applet.Call) error {
	kind := c.String("t", "TYPE", "", "only file systems of this type")
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	list, err := mounts()
	if err != nil {
		return err
	}
	for _, m := range list {
		if *kind == "" || *kind == m.kind {
			c.Printf("%s on %s type %s (%s)\n", m.device, m.point, m.kind, m.options)
		}
	}
	return nil
}

func df(c *applet.Call) error {
	human := c.Bool("h,human-readable", "sizes as 1.5G")
	c.Do("k", "sizes in units of 1024 bytes (the default)", func() { *human = false })
	inodes := c.Bool("i,inodes", "inodes in place of bytes")
	types := c.Bool("T,print-type", "show types")
	all := c.Bool("a,all", "show those without a size too")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	list, err := mounts()
	if err != nil {
		return err
	}
	if len(c.Args) > 0 {
		list = holding(c, list)
		*all = true
	}
	unit := "1K-blocks"
	if *human {
		unit = "Size"
	}
	if *inodes {
		unit = "Inodes"
	}
	kind := ""
	if *types {
		kind = fmt.Sprintf("%-10s ", "Type")
	}
	c.Printf("%-20s %s%9s %9s %9s %4s %s\n", "Filesystem", kind, unit, "Used", "Available", "Use%", "Mounted on")
	seen := map[[2]int32]bool{}
	for _, m := range list {
		var st unix.Statfs_t
		if unix.Statfs(m.point, &st) != nil || (st.Blocks == 0 || seen[st.Fsid.Val] && st.Fsid.Val != [2]int32{}) &&
			!*all {
			continue
		}
		seen[st.Fsid.Val] = true
		size := int64(st.Frsize)
		total, used, free := int64(st.Blocks)*size, int64(st.Blocks-st.Bfree)*size, int64(st.Bavail)*size
		word := func(n int64) string { return fmt.Sprint(n / 1024) }
		if *human {
			word = applet.Human
		}
		if *inodes {
			total, used, free = int64(st.Files), int64(st.Files-st.Ffree), int64(st.Ffree)
			word = func(n int64) string { return fmt.Sprint(n) }
		}
		percent := "-"
		if used+free > 0 {
			percent = fmt.Sprintf("%d%%", (used*100+used+free-1)/(used+free))
		}
		if *types {
			kind = fmt.Sprintf("%-10s ", m.kind)
		}
		c.Printf("%-20s %s%9s %9s %9s %4s %s\n", m.device, kind, word(total), word(used), word(free), percent, m.point)
	}
	return nil
}

// holding finds the mounts that files are on.
func holding(c *applet.Call, list []mounted) (out []mounted) {
	for _, path := range c.Args {
		full, err := resolve(path)
		if err == nil {
			_, err = os.Stat(full)
		}
		if err != nil {
			c.Warn(err)
			continue
		}
		var best mounted
		for _, m := range list {
			if (full == m.point || strings.HasPrefix(full, strings.TrimSuffix(m.point, "/")+"/")) &&
				len(m.point) >= len(best.point) {
				best = m // the last one covers those before
			}
		}
		out = append(out, best)
	}
	return out
}

// sizer is one run of du.
type sizer struct {
	*applet.Call
	human, all, apparent, one *bool
	follow, twice, mega       *bool
	depth                     int
	seen                      map[[2]uint64]bool
}

func du(c *applet.Call) error {
	s := &sizer{Call: c, seen: map[[2]uint64]bool{},
		human: c.Bool("h,human-readable", "sizes as 1.5M"), all: c.Bool("a,all", "show files too"),
		apparent: c.Bool(",apparent-size", "lengths, not space on the disk"),
		one:      c.Bool("x,one-file-system", "stay on one file system"),
		follow:   c.Bool("L,dereference", "follow links"), twice: c.Bool("l,count-links",
			"count a file as often as it is linked"), mega: c.Bool("m", "sizes in MiB"),
	}
	arguments := c.Bool("H", "follow links that are arguments")
	total := c.Bool("c,total", "show the sum")
	sum := c.Bool("s,summarize", "one line for each argument")
	depth := c.Int("d,max-depth", "N", 1<<30, "show folders N levels deep")
	c.Do("k", "sizes in units of 1024 bytes (the default)", func() {})
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	if s.depth = *depth; *sum {
		s.depth = 0
	}
	if len(c.Args) == 0 {
		c.Args = []string{"."}
	}
	var all int64
	for _, path := range c.Args {
		look := os.Lstat
		if *arguments || *s.follow {
			look = os.Stat
		}
		info, err := look(path)
		if err != nil {
			c.Warn(err)
			continue
		}
		all += s.walk(path, info, 0)
	}
	if *total {
		s.line(all, "total")
	}
	return nil
}

func (s *sizer) walk(path string, info fs.FileInfo, depth int) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	if id := [2]uint64{st.Dev, st.Ino}; !*s.twice && (st.Nlink > 1 && !info.IsDir() || *s.follow) {
		if s.seen[id] {
			return 0
		}
		s.seen[id] = true
	}
	size := st.Blocks * 512
	if *s.apparent {
		size = info.Size()
	}
	if info.IsDir() {
		list, err := os.ReadDir(path)
		if err != nil {
			s.Warn(err)
		}
		for _, e := range list {
			below, err := e.Info()
			if *s.follow && err == nil && below.Mode()&fs.ModeSymlink != 0 {
				below, err = os.Stat(filepath.Join(path, e.Name()))
			}
			if err != nil {
				continue // went away meanwhile, or points nowhere
			}
			if b, ok := below.Sys().(*syscall.Stat_t); ok && *s.one && b.Dev != st.Dev {
				continue
			}
			size += s.walk(filepath.Join(path, e.Name()), below, depth+1)
		}
	}
	if depth == 0 || depth <= s.depth && (info.IsDir() || *s.all) {
		s.line(size, path)
	}
	return size
}

func (s *sizer) line(size int64, name string) {
	if *s.human {
		s.Printf("%s\t%s\n", applet.Human(size), name)
		return
	}
	unit := int64(1 << 10)
	if *s.mega {
		unit = 1 << 20
	}
	s.Printf("%d\t%s\n", (size+unit-1)/unit, name)
}

// guess is the command file: a hint, by the first bytes.
func guess(c *applet.Call) error {
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	for _, path := range c.Args {
		info, err := os.Lstat(path)
		if err != nil {
			c.Warn(err)
			continue
		}
		word := kind(info)
		if to, err := os.Readlink(path); err == nil {
			word += " to " + to
		} else if info.Mode().IsRegular() && info.Size() > 0 {
			if word, err = content(path); err != nil {
				c.Warn(err)
				continue
			}
		}
		c.Printf("%s: %s\n", path, word)
	}
	return nil
}

func content(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head, err := bufio.NewReaderSize(f, 4096).Peek(4096)
	if err != nil && err != io.EOF {
		return "", err
	}
	switch {
	case bytes.HasPrefix(head, []byte("\x7fELF")):
		return elfWord(f)
	case bytes.HasPrefix(head, []byte("#!")):
		line, _, _ := bytes.Cut(head, []byte("\n"))
		return "script for " + strings.TrimSpace(string(line[2:])), nil
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return "Zstandard compressed data", nil
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return "tar archive", nil
	case utf8.Valid(bytes.TrimRight(head, "\x80\xff")) && !bytes.ContainsRune(head, 0):
		if t := http.DetectContentType(head); !strings.HasPrefix(t, "text/plain") {
			return t, nil
		}
		return "text", nil
	}
	return http.DetectContentType(head), nil
}
