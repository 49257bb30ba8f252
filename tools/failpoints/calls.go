// SPDX-License-Identifier: Apache-2.0

package main

// onlyError and failsTo say what a call returns, which its wrapper has to know.
const (
	onlyError = "error"
	file      = "*os.File"
	text      = "string"
)

// calls are the functions that change something outside of the process, by package and name, with the type they return
// before an error.
func calls() map[string]string {
	out := map[string]string{"os.OpenFile": file, "os.Create": file, "os.CreateTemp": file, "os.MkdirTemp": text}
	for _, name := range []string{
		"os.WriteFile", "os.Rename", "os.Remove", "os.RemoveAll", "os.Mkdir", "os.MkdirAll", "os.Symlink", "os.Link",
		"os.Truncate", "os.Chmod", "os.Chown", "os.Lchown",
		"unix.Mount", "unix.Unmount", "unix.MoveMount", "unix.MountSetattr", "unix.Renameat2", "unix.Mkdirat",
		"unix.Mkfifo", "unix.Mknod", "syscall.Mkfifo", "syscall.Mount", "syscall.Unmount",
		"netlink.LinkAdd", "netlink.LinkDel", "netlink.LinkModify", "netlink.LinkSetUp", "netlink.LinkSetMaster",
		"netlink.LinkSetNsFd", "netlink.AddrAdd", "netlink.AddrReplace", "netlink.RouteAdd", "netlink.RouteReplace",
		"netlink.NeighSet", "mount.All", "mount.UnmountAll", "mount.UnmountRecursive", "mount.Unmount",
	} {
		out[name] = onlyError
	}
	return out
}

// methods are those methods, of whatever value, that change something, take no arguments and return nothing but an
// error; and in which package, as it is called in places.
func methods() map[string]string {
	return map[string]string{"Flush": "runtime/network"} // of nftables.Conn: the whole batch
}
