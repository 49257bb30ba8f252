// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// follower is a file that tail -f waits for more of.
type follower struct {
	name string
	file *os.File
	info os.FileInfo
}

func tail(c *applet.Call) error {
	lines := c.String("n,lines", "N", "10", "lines; +N: from line N on")
	size := c.String("c,bytes", "N", "", "bytes, not lines; +N: from byte N on")
	follow := c.Bool("f,follow", "go on as the file grows")
	retry := c.Bool("F", "as -f, by name: also when the file is replaced or not there yet")
	quiet, always := c.Bool("q,quiet", "no file names"), c.Bool("v,verbose", "file names always")
	c.Digits("n")
	if len(c.Args) > 0 && fromLine(c.Args[0]) {
		c.Args = slices.Insert(c.Args, 0, "-n") // tail +5, as it was written of old
	}
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	*follow = *follow || *retry
	text, byLines := *lines, true
	if *size != "" {
		text, byLines = *size, false
	}
	from := strings.HasPrefix(text, "+")
	n, err := applet.ParseAmount(strings.TrimLeft(text, "+-"))
	if err != nil {
		return applet.Usage("%v", err)
	}
	if len(c.Args) == 0 {
		c.Args = []string{"-"}
	}
	names := *always || len(c.Args) > 1 && !*quiet
	var files []*follower
	first := true
	for _, name := range c.Args {
		f, err := os.Stdin, error(nil)
		if name != "-" {
			f, err = os.Open(name)
		}
		if err != nil {
			c.Warn(err)
			if *retry {
				files = append(files, &follower{name: name})
			}
			continue
		}
		title(c, name, names, &first)
		if err := end(c, f, n, byLines, from); err != nil {
			c.Warn(err)
		}
		info, _ := f.Stat()
		files = append(files, &follower{name, f, info})
	}
	if !*follow || len(files) == 0 {
		return nil
	}
	return watchFiles(c, files, *retry, names)
}

// fromLine tells whether an argument is as +5.
func fromLine(arg string) bool {
	return len(arg) > 1 && arg[0] == '+' && strings.Trim(arg[1:], "0123456789") == ""
}

// end prints the last n lines or bytes of a file, or all from the n-th on.
func end(c *applet.Call, f *os.File, n int64, lines, from bool) error {
	switch {
	case from && lines:
		at := int64(1)
		return applet.Parts(f, '\n', func(line []byte, ended bool) error {
			if at >= n {
				c.Line(line, ended)
			}
			at++
			return nil
		})
	case from:
		_, err := io.CopyN(io.Discard, f, max(0, n-1))
		if err == nil {
			_, err = io.Copy(c.Out, f)
		}
		if err == io.EOF {
			err = nil
		}
		return err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return endOfFile(c, f, info.Size(), n, lines)
	}
	return endOfStream(c, f, n, lines)
}

// endOfFile looks for the place from the end of the file.
func endOfFile(c *applet.Call, f *os.File, size, n int64, lines bool) error {
	at := max(0, size-n)
	if lines {
		buf := make([]byte, 64<<10)
		found := int64(0)
		for at = size; at > 0 && found <= n; {
			part := buf[:min(at, int64(len(buf)))]
			if _, err := f.ReadAt(part, at-int64(len(part))); err != nil && err != io.EOF {
				return err
			}
			i := len(part)
			for ; i > 0 && found <= n; i-- {
				if part[i-1] == '\n' && at-int64(len(part))+int64(i) != size {
					found++
				}
				if found == n && n > 0 && part[i-1] == '\n' && at-int64(len(part))+int64(i) != size {
					break
				}
			}
			at -= int64(len(part) - i)
			if found >= n {
				break
			}
		}
		if n == 0 {
			at = size
		}
	}
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(c.Out, f)
	return err
}

// endOfStream keeps as much as will be printed.
func endOfStream(c *applet.Call, f io.Reader, n int64, lines bool) error {
	if !lines {
		kept := []byte{}
		buf := make([]byte, 64<<10)
		for {
			got, err := f.Read(buf)
			kept = append(kept, buf[:got]...)
			kept = kept[max(0, int64(len(kept))-n):]
			if err != nil {
				_, _ = c.Out.Write(kept)
				if err == io.EOF {
					err = nil
				}
				return err
			}
		}
	}
	var kept []string
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			if kept = append(kept, line); int64(len(kept)) > n {
				kept = kept[1:]
			}
		}
		if err != nil {
			for _, l := range kept {
				c.Printf("%s", l)
			}
			if err == io.EOF {
				err = nil
			}
			return err
		}
	}
}

// watchFiles prints what files get. Events wake it; as a file may be written by way of another mount, of which there
// are no events, it looks every second besides.
func watchFiles(c *applet.Call, files []*follower, byName, names bool) error {
	events, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return err
	}
	watch := func(f *follower) {
		if f.name == "-" {
			return
		}
		_, _ = unix.InotifyAddWatch(events, f.name, unix.IN_MODIFY|unix.IN_ATTRIB)
		if byName {
			_, _ = unix.InotifyAddWatch(events, filepath.Dir(f.name), unix.IN_CREATE|unix.IN_MOVED_TO)
		}
	}
	for _, f := range files {
		watch(f)
	}
	last := files[len(files)-1]
	buf := make([]byte, 64<<10)
	for {
		for _, f := range files {
			if byName {
				f.again(c, watch)
			}
			if f.file == nil {
				continue
			}
			f.rewindTruncated()
			err := f.copyNew(buf, func(text []byte) error {
				if names && f != last {
					c.Printf("\n==> %s <==\n", f.name)
				}
				last = f
				_, err := c.Out.Write(text)
				return err
			})
			if err != nil {
				return err
			}
			if f.name == "-" && len(files) == 1 && !isRegular(f.file) {
				return nil // a pipe's end
			}
		}
		if err := c.Out.Flush(); err != nil {
			return err
		}
		fds := []unix.PollFd{{Fd: int32(events), Events: unix.POLLIN}}
		_, _ = unix.Poll(fds, 1000)
		for {
			if n, err := unix.Read(events, buf); n <= 0 || err != nil {
				break
			}
		}
	}
}

// rewindTruncated goes to the beginning of a file that has become shorter than what was read of it.
func (f *follower) rewindTruncated() {
	if info, err := f.file.Stat(); err == nil && info.Mode().IsRegular() {
		if at, err := f.file.Seek(0, io.SeekCurrent); err == nil && info.Size() < at {
			_, _ = f.file.Seek(0, io.SeekStart)
		}
	}
}

// copyNew reads what a file has got since it was last read. A file that cannot be read has got nothing.
func (f *follower) copyNew(buf []byte, write func([]byte) error) error {
	for {
		n, err := f.file.Read(buf)
		if n > 0 {
			if err := write(buf[:n]); err != nil {
				return err
			}
		}
		if err != nil || n == 0 {
			return nil
		}
	}
}

func isRegular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// again opens the file of that name if it is another one now.
func (f *follower) again(c *applet.Call, watch func(*follower)) {
	info, err := os.Stat(f.name)
	if err != nil || f.info != nil && os.SameFile(info, f.info) {
		return
	}
	file, err := os.Open(f.name)
	if err != nil {
		return
	}
	if f.file != nil {
		_, _ = io.Copy(c.Out, f.file) // what the old one got last
		f.file.Close()
	}
	f.file, f.info = file, info
	watch(f)
}
