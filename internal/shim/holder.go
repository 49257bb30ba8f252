// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/go-runc"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

const (
	holdTime = 30 * time.Second // for the holder to be ready
	highFD   = 64
)

// holder starts the process that holds a pod's namespaces: the front program, which makes itself as small and as
// powerless as a process can be. It ends with the shim: that has the other end of its pipe.
//
// Its first step makes the namespaces and the process in them, says its number and ends; the process is then a child of
// the shim, a subreaper. When everything is in place it says "ready", or what is wrong.
type holder struct {
	spec   spec
	bundle string
	front  string
}

// words are the front program's instructions; each begins with a letter (front/hold.c).
func (h holder) words() []string {
	out := []string{"r" + filepath.Join(h.bundle, "rootfs")}
	if path, own := h.spec.namespace(specs.UserNamespace); own && path != "" {
		out = append(out, "u"+path)
	} else if own {
		out = append(out, "U")
	}
	if path, own := h.spec.namespace(specs.NetworkNamespace); own && path != "" {
		out = append(out, "n"+path)
	} else if own {
		out = append(out, "N")
	}
	for _, n := range []struct {
		kind specs.LinuxNamespaceType
		word string
	}{{specs.IPCNamespace, "i"}, {specs.UTSNamespace, "t"}, {specs.PIDNamespace, "p"}} {
		if _, own := h.spec.namespace(n.kind); own {
			out = append(out, n.word)
		}
	}
	if _, own := h.spec.namespace(specs.UTSNamespace); own && h.spec.Hostname != "" {
		out = append(out, "h"+h.spec.Hostname)
	}
	for _, name := range slices.Sorted(maps.Keys(h.spec.Linux.Sysctl)) {
		out = append(out, "s"+sysctlFile(name)+"="+h.spec.Linux.Sysctl[name])
	}
	return out
}

// foreign says which sysctl is not to be set, because the namespace that it belongs to is not the pod's own: the holder
// may write to the machine's as well. (Pure.)
func (h holder) foreign() error {
	for _, name := range slices.Sorted(maps.Keys(h.spec.Linux.Sysctl)) {
		kind := sysctlNamespace(sysctlFile(name))
		if kind == "" {
			return fmt.Errorf("sysctl %s belongs to the machine", name)
		}
		if _, own := h.spec.namespace(kind); !own {
			return fmt.Errorf("sysctl %s belongs to the machine: the pod has no %s namespace of its own", name, kind)
		}
	}
	return nil
}

// sysctlNamespace is the kind of namespace that the sysctl of a file belongs to; "": it is the machine's. (Pure.)
func sysctlNamespace(file string) specs.LinuxNamespaceType {
	for _, n := range []struct {
		begins string
		kind   specs.LinuxNamespaceType
	}{
		{"net/", specs.NetworkNamespace}, {"user/", specs.UserNamespace}, {"fs/mqueue/", specs.IPCNamespace},
		{"kernel/shm", specs.IPCNamespace}, {"kernel/msg", specs.IPCNamespace}, {"kernel/sem", specs.IPCNamespace},
		{"kernel/domainname", specs.UTSNamespace}, {"kernel/hostname", specs.UTSNamespace},
	} {
		if strings.HasPrefix(file, n.begins) && filepath.IsLocal(file) && filepath.Clean(file) == file {
			return n.kind
		}
	}
	return ""
}

// sysctlFile is a sysctl's file below /proc/sys. A name with slashes has dots of its own.
func sysctlFile(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return strings.ReplaceAll(name, ".", "/")
}

// start starts the holder and gives its number and its end.
func (h holder) start(children *children) (pid int, end <-chan runc.Exit, err error) {
	if err := h.foreign(); err != nil {
		return 0, nil, err
	}
	if err := os.MkdirAll(filepath.Join(h.bundle, "rootfs"), 0o711); err != nil {
		return 0, nil, err
	}
	output, step, first, err := h.launch(children)
	if err != nil {
		return 0, nil, fmt.Errorf("start the process that holds the pod's namespaces: %w", err)
	}
	defer output.Close()
	done := children.expect()
	defer done()
	_ = output.SetReadDeadline(time.Now().Add(holdTime))
	words, rerr := io.ReadAll(output)
	if rerr != nil { // it hangs
		_ = step.Kill()
	}
	<-first
	pid, err = readHolder(string(words))
	if err != nil {
		if pid != 0 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		return 0, nil, fmt.Errorf("the process that holds the pod's namespaces: %w", errors.Join(err, rerr))
	}
	return pid, children.adopt(pid), nil
}

// launch starts the first step, and gives what the holder says, the step, and its end.
func (h holder) launch(children *children) (output *os.File, step *os.Process, first chan runc.Exit, err error) {
	program, err := sealed(h.front)
	if err != nil {
		return nil, nil, nil, err
	}
	defer program.Close()
	life, err := lifeline()
	if err != nil {
		return nil, nil, nil, err
	}
	defer life.Close()
	output, end, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer end.Close()
	words, instruct, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, errors.Join(err, output.Close())
	}
	defer words.Close()
	cmd := &exec.Cmd{
		Path: fmt.Sprintf("/proc/self/fd/%d", program.Fd()), Args: []string{"/pause"}, Env: []string{},
		ExtraFiles: []*os.File{life, end, words}, SysProcAttr: h.attributes(),
	}
	first, err = children.Start(cmd)
	if err != nil {
		return nil, nil, nil, errors.Join(err, output.Close(), instruct.Close())
	}
	words.Close() // then writing fails when the holder has ended
	_, err = io.WriteString(instruct, strings.Join(h.words(), "\x00")+"\x00")
	if err = errors.Join(err, instruct.Close()); err != nil {
		return nil, nil, nil, errors.Join(err, output.Close())
	}
	return output, cmd.Process, first, nil
}

// sealed opens a program so that whoever sees it run cannot write to it: by way of a read-only mount that nobody else
// has or, on kernels before 5.12, as a copy in memory.
func sealed(path string) (*os.File, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err == nil {
		err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		if err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		if fd, err = copied(path); err != nil {
			return nil, err
		}
	}
	defer unix.Close(fd)
	// Above all that a child is given.
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, highFD)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(high), path), nil
}

// copied makes a copy in memory that cannot be changed.
func copied(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	fd, err := unix.MemfdCreate("pause", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return 0, err
	}
	if _, err := unix.Write(fd, data); err != nil {
		unix.Close(fd)
		return 0, err
	}
	defer unix.Close(fd)
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|
		unix.F_SEAL_WRITE); err != nil {
		return 0, err
	}
	// What is open for writing cannot be run.
	return unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// attributes has Go make a user namespace that has no name yet: its mappings are for its parent to write.
func (h holder) attributes() *syscall.SysProcAttr {
	path, own := h.spec.namespace(specs.UserNamespace)
	if !own || path != "" {
		return &syscall.SysProcAttr{}
	}
	mappings := func(from []specs.LinuxIDMapping) (out []syscall.SysProcIDMap) {
		for _, m := range from {
			out = append(out, syscall.SysProcIDMap{
				ContainerID: int(m.ContainerID), HostID: int(m.HostID), Size: int(m.Size),
			})
		}
		return out
	}
	return &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, GidMappingsEnableSetgroups: true,
		UidMappings: mappings(h.spec.Linux.UIDMappings), GidMappings: mappings(h.spec.Linux.GIDMappings),
	}
}

// readHolder reads what the holder has printed: its number on a line, and "ready".
func readHolder(words string) (pid int, err error) {
	number, rest, _ := strings.Cut(words, "\n")
	pid, err = strconv.Atoi(number)
	if err != nil {
		return 0, fmt.Errorf("it says %q", strings.TrimSpace(words))
	}
	if rest = strings.TrimSpace(rest); rest != "ready" {
		return pid, fmt.Errorf("it says %q", rest)
	}
	return pid, nil
}

// lifeline is a pipe whose other end nobody has but the shim, for as long as it lives.
func lifeline() (*os.File, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	// The writing end stays open on purpose, and is never written to.
	return os.NewFile(uintptr(fds[0]), "life"), nil
}
