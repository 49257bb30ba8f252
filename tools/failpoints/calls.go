// SPDX-License-Identifier: Apache-2.0

package main

// onlyError and failsTo say what a call returns, which its wrapper has to know.
const (
	onlyError = "error"
	file      = "*os.File"
	text      = "string"
	status    = "int"
	process   = "chan runc.Exit"
	count     = "uint"
)

// calls are the functions that change something outside of the process, by package and name, with the type they return
// before an error.
func calls() map[string]string {
	out := map[string]string{"os.OpenFile": file, "os.Create": file, "os.CreateTemp": file, "os.MkdirTemp": text,
		"netlink.ConntrackDeleteFilters": count}
	for _, name := range []string{
		"os.WriteFile", "os.Rename", "os.Remove", "os.RemoveAll", "os.Mkdir", "os.MkdirAll", "os.Symlink", "os.Link",
		"os.Truncate", "os.Chmod", "os.Chown", "os.Lchown",
		"unix.Mount", "unix.Unmount", "unix.MoveMount", "unix.MountSetattr", "unix.Renameat2", "unix.Mkdirat",
		"unix.Mkfifo", "unix.Mknod", "unix.Unlinkat", "unix.Rmdir", "unix.Kill", "unix.PidfdSendSignal",
		"syscall.Mkfifo", "syscall.Mount", "syscall.Unmount", "netlink.LinkAdd", "netlink.LinkDel",
		"netlink.LinkModify", "netlink.LinkSetUp", "netlink.LinkSetMaster", "netlink.LinkSetNsFd", "netlink.AddrAdd",
		"netlink.AddrReplace", "netlink.RouteAdd", "netlink.RouteReplace", "netlink.NeighSet", "mount.All",
		"mount.UnmountAll", "mount.UnmountRecursive", "mount.Unmount",
	} {
		out[name] = onlyError
	}
	return out
}

// method is a method, of whatever value, that changes something.
type method struct {
	in     string // the package, as it is called in places, that means it by the name; others below it do, too
	given  bool   // it takes arguments, else none
	result string // what it returns before an error
}

// methods are those methods, by name.
func methods() map[string][]method {
	out := map[string][]method{"Sync": {{in: "localvolume", result: onlyError}}}
	// of nftables.Conn: the whole batch
	for _, in := range []string{"runtime/network", "netpolicy/tables", "serviceproxy/tables"} {
		out["Flush"] = append(out["Flush"], method{in: in, result: onlyError})
	}
	for _, name := range []string{"setProject", "limit"} { // of quotas
		out[name] = []method{{"localvolume", true, onlyError}}
	}
	for _, name := range []string{"Exec", "Delete", "Update", "Pause", "Resume", "Checkpoint"} { // of runc
		out[name] = []method{{"shim", true, onlyError}}
	}
	for _, name := range []string{"Run", "Restore"} {
		out[name] = []method{{"shim", true, status}}
	}
	out["Start"] = []method{{"shim", true, process}} // of children
	return out
}
