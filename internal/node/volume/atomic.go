// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The layout that users know and that programs watch for changes:
//
//	..2026_11_05_09_30_00.123456789/   one version, with all files
//	..data -> ..2026_11_05_…           the version that is shown; replaced by rename
//	key -> ..data/key                  for each top-level name
//
// A reader that goes through ..data sees one version whole. The version is complete before ..data names it, links to
// new names come after, links to names that are gone go last. A crash leaves at most versions that nobody shows and
// unneeded links; the next call removes them, whether or not the payload is the same.
const shown = "..data"

// show makes the volume show the payload; on tmpfs when it holds secrets.
func (m *Manager) show(pod *corev1.Pod, v corev1.Volume, p payload) (changed bool, err error) {
	dir := m.volumeDir(pod.UID, v)
	if v.Secret != nil || v.Projected != nil {
		err = mountTmpfs(dir, "mode=0755")
	} else {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return false, err
	}
	return writeAll(dir, p, fsGroup(pod), time.Now())
}

// writeAll makes dir show exactly the payload, with the group's read permission on all of it if there is one.
// changed reports whether the contents were other before.
func writeAll(dir string, p payload, gid *int64, now time.Time) (changed bool, err error) {
	if err := own(dir, 0o755, nil, gid); err != nil {
		return false, err
	}
	current, err := os.Readlink(filepath.Join(dir, shown))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if current == "" || !p.isAt(filepath.Join(dir, current), gid) {
		if current, err = p.writeVersion(dir, gid, now); err != nil {
			return false, err
		}
		changed = true
		if err := relink(dir, shown, current); err != nil {
			return false, err
		}
	}
	tops := p.tops()
	for top := range tops {
		if err := relink(dir, top, path.Join(shown, top)); err != nil {
			return changed, err
		}
	}
	return changed, sweep(dir, current, tops)
}

// writeVersion writes all files to a new folder in dir and returns its name.
func (p payload) writeVersion(dir string, gid *int64, now time.Time) (string, error) {
	version, err := os.MkdirTemp(dir, now.UTC().Format("..2006_01_02_15_04_05."))
	if err != nil {
		return "", err
	}
	if err := own(version, 0o755, nil, gid); err != nil {
		return "", err
	}
	for name, f := range p {
		full := filepath.Join(version, name)
		for d := path.Dir(name); d != "."; d = path.Dir(d) {
			if err := os.MkdirAll(filepath.Join(version, d), 0o755); err != nil {
				return "", err
			}
			if err := own(filepath.Join(version, d), 0o755, nil, gid); err != nil {
				return "", err
			}
		}
		if err := os.WriteFile(full, f.data, 0o600); err != nil {
			return "", err
		}
		if err := own(full, f.mode, f.uid, gid); err != nil {
			return "", err
		}
	}
	return filepath.Base(version), nil
}

// own sets owner and mode, past any umask. A group may read all and enter folders, which hand the group on.
func own(name string, mode fs.FileMode, uid, gid *int64) error {
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	if gid != nil {
		mode = withGroup(mode, info.IsDir())
	}
	if uid != nil || gid != nil {
		if err := os.Lchown(name, idOr(uid), idOr(gid)); err != nil {
			return fmt.Errorf("changing the owner of %s to user %s, group %s: %w", filepath.Base(name), idName(uid),
				idName(gid), err)
		}
	}
	return os.Chmod(name, mode)
}

func withGroup(mode fs.FileMode, dir bool) fs.FileMode {
	if dir {
		return mode | 0o550 | fs.ModeSetgid
	}
	return mode | 0o440
}

func idOr(id *int64) int {
	if id == nil {
		return -1
	}
	return int(*id)
}

func idName(id *int64) string {
	if id == nil {
		return "(unchanged)"
	}
	return strconv.FormatInt(*id, 10)
}

// isAt reports whether the version folder holds exactly the payload: names, contents, modes and owners. What a power
// cut left behind is recognized by its contents, so nothing needs to be synced.
func (p payload) isAt(version string, gid *int64) bool {
	found := 0
	err := filepath.WalkDir(version, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(version, name)
		if err != nil {
			return err
		}
		want, ok := p[rel]
		info, err := d.Info()
		if err != nil || !ok || !want.matches(name, info, gid) {
			return errors.Join(err, errDiffers)
		}
		found++
		return nil
	})
	return err == nil && found == len(p)
}

var errDiffers = errors.New("differs")

func (f file) matches(name string, info fs.FileInfo, gid *int64) bool {
	mode := f.mode
	if gid != nil {
		mode = withGroup(mode, false)
	}
	uid, group := ownerOf(info)
	if info.Mode() != mode || (f.uid != nil && uid != *f.uid) || (gid != nil && group != *gid) ||
		info.Size() != int64(len(f.data)) {
		return false
	}
	data, err := os.ReadFile(name)
	return err == nil && bytes.Equal(data, f.data)
}

func ownerOf(info fs.FileInfo) (uid, gid int64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(st.Uid), int64(st.Gid)
	}
	return -1, -1
}

// relink makes dir/name a symlink to target, in one step.
func relink(dir, name, target string) error {
	full := filepath.Join(dir, name)
	if at, err := os.Readlink(full); err == nil && at == target {
		return nil
	}
	tmp := filepath.Join(dir, "..link_tmp")
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	err := os.Rename(tmp, full)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTEMPTY) {
		// A folder that a subPath once made here, before there was such a key.
		if err := os.RemoveAll(full); err != nil {
			return err
		}
		err = os.Rename(tmp, full)
	}
	return err
}

// sweep removes what the volume no longer shows: other versions, half-made ones, links to names that are gone.
func sweep(dir, current string, tops map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if name == current || name == shown || tops[name] {
			continue
		}
		switch {
		case strings.HasPrefix(name, ".."):
			err = os.RemoveAll(filepath.Join(dir, name))
		case e.Type()&fs.ModeSymlink != 0: // a folder is a subPath's
			err = os.Remove(filepath.Join(dir, name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
