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
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/accounts"
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
	c.Printf("%-20s %s%10s %10s %10s %4s %s\n", "Filesystem", kind, unit, "Used", "Available", "Use%", "Mounted on")
	seen := map[[2]int32]bool{}
	for _, m := range list {
		var st unix.Statfs_t
		if unix.Statfs(m.point, &st) != nil || (st.Blocks == 0 || seen[st.Fsid.Val] && st.Fsid.Val != [2]int32{}) && !*all {
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
		c.Printf("%-20s %s%10s %10s %10s %4s %s\n", m.device, kind, word(total), word(used), word(free), percent, m.point)
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
			if (full == m.point || strings.HasPrefix(full, strings.TrimSuffix(m.point, "/")+"/")) && len(m.point) >= len(best.point) {
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
	depth                     int
	seen                      map[[2]uint64]bool
}

func du(c *applet.Call) error {
	s := &sizer{Call: c, seen: map[[2]uint64]bool{},
		human: c.Bool("h,human-readable", "sizes as 1.5M"), all: c.Bool("a,all", "show files too"),
		apparent: c.Bool(",apparent-size", "lengths, not space on the disk"), one: c.Bool("x,one-file-system", "stay on one file system"),
	}
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
		info, err := os.Lstat(path)
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
	if id := [2]uint64{st.Dev, st.Ino}; st.Nlink > 1 && !info.IsDir() {
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
			if err != nil {
				continue // went away meanwhile
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
	s.Printf("%d\t%s\n", (size+1023)/1024, name)
}

func stat(c *applet.Call) error {
	follow := c.Bool("L,dereference", "show what links point to")
	format := c.String("c,format", "FORMAT", "", "%n name, %s size, %a mode, %A as rwx, %u %g numbers, %U %G names, %i inode, %h links, %F kind, %Y %y mtime")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	var names accounts.Names
	for _, path := range c.Args {
		look := os.Lstat
		if *follow {
			look = os.Stat
		}
		info, err := look(path)
		if err != nil {
			c.Warn(err)
			continue
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			continue
		}
		at := func(t syscall.Timespec) string {
			return time.Unix(t.Sec, t.Nsec).Format("2006-01-02 15:04:05.000000000 -0700")
		}
		facts := []string{"%%", "%", "%n", path, "%s", fmt.Sprint(info.Size()), "%a", fmt.Sprintf("%o", bits(info.Mode())), "%A", Mode(info.Mode()),
			"%u", fmt.Sprint(st.Uid), "%g", fmt.Sprint(st.Gid), "%U", names.User(int(st.Uid)), "%G", names.Group(int(st.Gid)),
			"%i", fmt.Sprint(st.Ino), "%h", fmt.Sprint(st.Nlink), "%F", kind(info), "%Y", fmt.Sprint(st.Mtim.Sec), "%X", fmt.Sprint(st.Atim.Sec),
			"%Z", fmt.Sprint(st.Ctim.Sec), "%y", at(st.Mtim), "%x", at(st.Atim), "%z", at(st.Ctim), "%b", fmt.Sprint(st.Blocks), "%d", fmt.Sprint(st.Dev)}
		if *format != "" {
			c.Println(strings.NewReplacer(facts...).Replace(*format))
			continue
		}
		name := path
		if to, err := os.Readlink(path); err == nil {
			name += " -> " + to
		}
		c.Printf("  File: %s\n", name)
		c.Printf("  Size: %-12d Blocks: %-10d IO Block: %-6d %s\n", info.Size(), st.Blocks, st.Blksize, kind(info))
		c.Printf("Device: %d,%d  Inode: %-10d Links: %d\n", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino, st.Nlink)
		c.Printf("Access: (%04o/%s)  Uid: (%d/%s)  Gid: (%d/%s)\n", bits(info.Mode()), Mode(info.Mode()),
			st.Uid, names.User(int(st.Uid)), st.Gid, names.Group(int(st.Gid)))
		c.Printf("Access: %s\nModify: %s\nChange: %s\n", at(st.Atim), at(st.Mtim), at(st.Ctim))
	}
	return nil
}

func kind(info fs.FileInfo) string {
	switch m := info.Mode(); {
	case m.IsDir():
		return "directory"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeCharDevice != 0:
		return "character special file"
	case m&fs.ModeDevice != 0:
		return "block special file"
	case m&fs.ModeNamedPipe != 0:
		return "fifo"
	case m&fs.ModeSocket != 0:
		return "socket"
	case info.Size() == 0:
		return "regular empty file"
	}
	return "regular file"
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
