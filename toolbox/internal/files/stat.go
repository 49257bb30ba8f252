// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/accounts"
	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

func stat(c *applet.Call) error {
	follow := c.Bool("L,dereference", "show what links point to")
	format := c.String("c,format", "FORMAT", "",
		"%n name, %s size, %a mode, %A as rwx, %u %g numbers, %U %G names, %i inode, %h links, %F kind, %Y %y mtime; as %8s or %-8s in columns")
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
		if *format != "" {
			c.Println(fill(*format, facts(path, info, st, &names)))
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

// at words a time as stat does.
func at(t syscall.Timespec) string {
	return time.Unix(t.Sec, t.Nsec).Format("2006-01-02 15:04:05.000000000 -0700")
}

// facts are what the letters of stat's format stand for.
func facts(path string, info fs.FileInfo, st *syscall.Stat_t, names *accounts.Names) map[byte]string {
	quoted := path
	if to, err := os.Readlink(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		quoted = fmt.Sprintf("'%s' -> '%s'", path, to)
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return map[byte]string{
		'n': path, 'N': quoted, 's': number(info.Size()), 'a': fmt.Sprintf("%o", bits(info.Mode())),
		'A': Mode(info.Mode()), 'f': fmt.Sprintf("%x", st.Mode), 'u': number(int64(st.Uid)), 'g': number(int64(st.Gid)),
		'U': names.User(int(st.Uid)), 'G': names.Group(int(st.Gid)), 'i': fmt.Sprint(st.Ino), 'h': fmt.Sprint(st.Nlink),
		'F': kind(info), 'b': number(st.Blocks), 'B': "512", 'o': number(int64(st.Blksize)), 'd': fmt.Sprint(st.Dev),
		'D': fmt.Sprintf("%x", st.Dev), 't': fmt.Sprintf("%x", unix.Major(st.Rdev)),
		'T': fmt.Sprintf("%x", unix.Minor(st.Rdev)), 'X': number(st.Atim.Sec), 'Y': number(st.Mtim.Sec),
		'Z': number(st.Ctim.Sec), 'x': at(st.Atim), 'y': at(st.Mtim), 'z': at(st.Ctim), 'w': "-", 'W': "0",
	}
}

// fill puts facts in the places of their letters: %s, or %8s, %-8s and %08s in columns.
func fill(format string, facts map[byte]string) string {
	var b strings.Builder
	for {
		plain, rest, more := strings.Cut(format, "%")
		b.WriteString(plain)
		if !more {
			return b.String()
		}
		after := strings.TrimLeft(rest, "-0123456789")
		width := rest[:len(rest)-len(after)]
		switch {
		case after == "":
			b.WriteString("%" + rest)
			return b.String()
		case after[0] == '%':
			b.WriteByte('%')
		default:
			text, ok := facts[after[0]]
			if !ok {
				text = "?"
			}
			n, _ := strconv.Atoi(strings.TrimLeft(width, "-0"))
			pad := strings.Repeat(" ", max(0, min(n, 10_000)-len(text)))
			switch {
			case strings.HasPrefix(width, "-"):
				text += pad
			case strings.HasPrefix(width, "0"):
				text = strings.ReplaceAll(pad, " ", "0") + text
			default:
				text = pad + text
			}
			b.WriteString(text)
		}
		format = after[1:]
	}
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
