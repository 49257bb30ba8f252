// SPDX-License-Identifier: Apache-2.0

package localvolume

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Project ids of volumes are between these. Others' are seldom that high.
const (
	firstProject = 0x57000000
	projects     = 1 << 24
)

func ours(id uint32) bool { return id >= firstProject && id < firstProject+projects }

// quotas are what a file system does for volumes: it counts what is in a folder to a project, and holds that to a size.
type quotas interface {
	missing(at string) string                         // why it does not do so where a folder is; "": it does
	project(dir *os.File) (uint32, error)             // that a folder is counted to; 0: none
	setProject(dir *os.File, id uint32) error         // of an empty folder, and all that will be in it
	limit(dir *os.File, id uint32, bytes int64) error // 0: none
	used(dir *os.File, id uint32) (bool, error)       // whether anything is counted to it or holds it
}

// kernel is the file system itself.
type kernel struct{}

// fsxattr is struct fsxattr of linux/fs.h.
type fsxattr struct {
	flags, extentSize, extents, project, cowExtentSize uint32
	_                                                  [8]byte
}

const (
	getXattr       = 0x801c581f // FS_IOC_FSGETXATTR
	setXattr       = 0x401c5820 // FS_IOC_FSSETXATTR
	projectInherit = 0x200      // FS_XFLAG_PROJINHERIT: what is made in the folder is counted, too
)

func xattr(dir *os.File, request uintptr, x *fsxattr) error {
	//nolint:gosec // the kernel's interface takes the address of a struct
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), request, uintptr(unsafe.Pointer(x))); e != 0 {
		return e
	}
	return nil
}

func (kernel) project(dir *os.File) (uint32, error) {
	var x fsxattr
	err := xattr(dir, getXattr, &x)
	return x.project, err
}

func (kernel) setProject(dir *os.File, id uint32) error {
	var x fsxattr
	if err := xattr(dir, getXattr, &x); err != nil {
		return err
	}
	x.project, x.flags = id, x.flags|projectInherit
	return xattr(dir, setXattr, &x)
}

// quota is struct if_dqblk of linux/quota.h: blocks are KiB, space is bytes.
type quota struct {
	blockLimit, blockSoft, space, inodeLimit, inodeSoft, inodes, blockTime, inodeTime uint64
	valid                                                                             uint32
	_                                                                                 uint32
}

const (
	projectQuota = 2 // PRJQUOTA
	getQuota     = 0x800007<<8 | projectQuota
	setQuota     = 0x800008<<8 | projectQuota
	blockLimits  = 1 // QIF_BLIMITS
)

// quotactl asks the file system that a folder is on. Kernels before 5.14 want its device.
func quotactl(dir *os.File, cmd uintptr, id uint32, q *quota) error {
	//nolint:gosec // the kernel's interface takes the address of a struct
	_, _, e := unix.Syscall6(unix.SYS_QUOTACTL_FD, dir.Fd(), cmd, uintptr(id), uintptr(unsafe.Pointer(q)), 0, 0)
	if e == 0 {
		return nil
	}
	if !errors.Is(e, unix.ENOSYS) {
		return e
	}
	m, err := mountOf(dir.Name())
	if err != nil {
		return err
	}
	device, err := unix.BytePtrFromString(m.Source)
	if err != nil {
		return err
	}
	//nolint:gosec // likewise
	_, _, e = unix.Syscall6(unix.SYS_QUOTACTL, cmd, uintptr(unsafe.Pointer(device)), uintptr(id),
		uintptr(unsafe.Pointer(q)), 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

func (kernel) limit(dir *os.File, id uint32, bytes int64) error {
	q := quota{blockLimit: (uint64(max(bytes, 0)) + 1023) / 1024, valid: blockLimits}
	return quotactl(dir, setQuota, id, &q)
}

func (kernel) used(dir *os.File, id uint32) (bool, error) {
	var q quota
	err := quotactl(dir, getQuota, id, &q)
	if errors.Is(err, unix.ENOENT) { // xfs: nothing is known of it
		return false, nil
	}
	return q.space != 0 || q.inodes != 0 || q.blockLimit != 0 || q.inodeLimit != 0, err
}

// freeProject is an id that nothing is counted to or held by: by the volume's name, so that two servers on one file
// system do not want the same.
func freeProject(in quotas, dir *os.File, name string) (uint32, error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	for try := range uint32(1024) {
		id := firstProject + (h.Sum32()+try)%projects
		used, err := in.used(dir, id)
		if err != nil {
			return 0, fmt.Errorf("looking for a free project id: %w", err)
		}
		if !used {
			return id, nil
		}
	}
	return 0, errors.New("no project id is free on the file system")
}

func (kernel) missing(at string) string {
	m, err := mountOf(at)
	if err != nil {
		return err.Error()
	}
	options := append(strings.Split(m.VFSOptions, ","), strings.Split(m.Options, ",")...)
	if slices.Contains(options, "prjquota") || slices.Contains(options, "pquota") {
		return ""
	}
	how := "put the data folder on ext4 or xfs, mounted with prjquota"
	switch m.FSType {
	case "ext4":
		how = "unmount it, tune2fs -O project,quota " + m.Source + ", and mount it with -o prjquota"
	case "xfs":
		how = "mount it with -o prjquota"
	}
	return fmt.Sprintf("the file system of %s (%s, mounted at %s) has no project quotas: to have sizes enforced, %s",
		at, m.FSType, m.Mountpoint, how)
}

// mountOf is the mount that a path is on.
func mountOf(at string) (*mountinfo.Info, error) {
	real, err := filepath.EvalSymlinks(at)
	if err != nil {
		return nil, err
	}
	all, err := mountinfo.GetMounts(mountinfo.ParentsFilter(real))
	if err != nil {
		return nil, fmt.Errorf("reading the list of mounts: %w", err)
	}
	var best *mountinfo.Info
	for _, m := range all { // of two on one place the later hides the other
		if best == nil || len(m.Mountpoint) >= len(best.Mountpoint) {
			best = m
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%s is on no mount", real)
	}
	return best, nil
}
