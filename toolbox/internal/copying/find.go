// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// chosen is a file of an open folder, and the name that it has in an archive.
type chosen struct{ base, name string }

// find opens the folder that holds what a path means, and names what that is: one file, or, where there is none of the
// name and its last part is a pattern, all that match. Those are below one folder in the archive.
func (r *root) find(text string) (dir int, found []chosen, err error) {
	dir, base, err := r.parent(text)
	if err != nil {
		return 0, nil, exists(text, err)
	}
	var st unix.Stat_t
	err = unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil {
		return dir, []chosen{{base, archiveName(text, base)}}, nil
	}
	unix.Close(dir)
	if !errors.Is(err, unix.ENOENT) || !strings.ContainsAny(base, "*?[") {
		return 0, nil, exists(text, err)
	}
	return r.match(strings.TrimRight(text, "/"), base)
}

// mostLinks is how many links are followed, as the kernel has it.
const mostLinks = 40

// findFollowed is find, but for a path that is a link: that is what it leads to, within the root, under the link's
// name.
func (r *root) findFollowed(text string) (int, []chosen, error) {
	at := text
	for range mostLinks {
		dir, base, err := r.parent(at)
		if err != nil {
			break // find says it
		}
		if _, is := r.kernels(dir); is && at != text { // a link must not lead to what is not to be copied
			unix.Close(dir)
			break
		}
		to := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(dir, base, to)
		unix.Close(dir)
		if err != nil { // it is no link, or it is a pattern
			dir, found, err := r.find(at)
			if at != text && err == nil && len(found) == 1 {
				found[0].name = path.Base(text)
			}
			return dir, found, err
		}
		// Not cleaned: a link on the way is to be gone through before "..", as the kernel does.
		if link := string(to[:n]); strings.HasPrefix(link, "/") {
			at = link
		} else {
			at = strings.TrimRight(at, "/")
			at = at[:strings.LastIndexByte(at, '/')+1] + link
		}
	}
	return r.find(text)
}

// archiveName is the name of one file: a link to a folder has the link's name.
func archiveName(text, base string) string {
	if trimmed := strings.TrimRight(text, "/"); base == "." && trimmed != "" {
		if last := trimmed[strings.LastIndexByte(trimmed, '/')+1:]; last != "." && last != ".." {
			return last
		}
	}
	return base
}

// match finds the files of a folder whose names a pattern fits; one that begins with a dot is meant only by a pattern
// that does.
func (r *root) match(text, pattern string) (int, []chosen, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return 0, nil, applet.Fail(1, "%s is not a pattern: a bracket is not closed", text)
	}
	fd, err := r.open(text[:len(text)-len(pattern)], unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return 0, nil, exists(text, err)
	}
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		unix.Close(fd)
		return 0, nil, err
	}
	folder := os.NewFile(uintptr(again), text)
	names, err := folder.Readdirnames(-1)
	folder.Close()
	if err != nil {
		unix.Close(fd)
		return 0, nil, err
	}
	slices.Sort(names)
	var found []chosen
	for _, name := range names {
		if fits, err := path.Match(pattern, name); err == nil && fits && (name[0] != '.' || pattern[0] == '.') {
			found = append(found, chosen{name, "matches/" + name})
		}
	}
	if len(found) == 0 {
		unix.Close(fd)
		return 0, nil, applet.Fail(notThere, "nothing matches %s", text)
	}
	return fd, found, nil
}

// sizeOf is how many bytes files have, with all below them; what cannot be read counts for nothing, and neither does
// what is left out.
func sizeOf(dir int, found []chosen, out func(name string) bool) (total int64) {
	for _, f := range found {
		top := fmt.Sprintf("/proc/self/fd/%d/%s", dir, f.base)
		_ = filepath.WalkDir(top, func(file string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil
			case out(f.name + strings.TrimPrefix(path.Clean(file), path.Clean(top))):
				return fs.SkipDir
			case !d.Type().IsRegular():
				return nil
			}
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
			return nil
		})
	}
	return total
}

// kernelsIn tells by its name in an archive whether a folder is one that containers have from the kernel, where what is
// packed holds such ones: they are made when they are read, and are not the container's.
func (r *root) kernelsIn(dir int, found []chosen) func(name string) bool {
	at, _ := r.kernels(dir)
	_, known := r.top()
	return func(name string) bool {
		if !known {
			return false
		}
		for _, f := range found {
			if rest, is := strings.CutPrefix(name, f.name); is && (rest == "" || rest[0] == '/') {
				switch path.Join("/", at, f.base, rest) {
				case "/dev", "/proc", "/sys":
					return true
				}
			}
		}
		return false
	}
}
