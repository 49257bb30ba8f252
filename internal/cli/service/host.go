// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Host is a machine that services are installed on.
type Host struct {
	Root string // its folder of files; "" for /
	// Run runs a command of the machine.
	Run func(ctx context.Context, command ...string) error
	// Has reports whether the machine has a command.
	Has func(command string) bool
}

// ThisMachine is the machine that this process runs on.
func ThisMachine() Host {
	return Host{Run: run, Has: func(command string) bool { _, err := exec.LookPath(command); return err == nil }}
}

func run(ctx context.Context, command ...string) error {
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (h Host) path(of string) string { return filepath.Join("/", h.Root, of) }

// systemd reports whether it runs on the machine: sd_booted(3).
func (h Host) systemd() bool {
	info, err := os.Stat(h.path("/run/systemd/system"))
	return err == nil && info.IsDir()
}

func (h Host) unit(name string) string   { return h.path("/etc/systemd/system/" + name + ".service") }
func (h Host) script(name string) string { return h.path("/etc/init.d/" + name) }

// file is where the service of that name is, or would be.
func (h Host) file(name string) string {
	if h.systemd() {
		return h.unit(name)
	}
	return h.script(name)
}

// StartCommand is the command that starts the service of that name; "" if it is not installed.
func (h Host) StartCommand(name string) string {
	for file, command := range map[string]string{h.unit(name): "systemctl start " + name,
		h.script(name): h.script(name) + " start"} {
		if mine, err := ours(file); err == nil && mine {
			return command
		}
	}
	return ""
}

// Install writes the service, has it started at boot, and, if now, starts it. It returns the file that it has written.
func (h Host) Install(ctx context.Context, s Service, now bool) (file string, err error) {
	file = h.file(s.Name)
	text, mode := s.Script(), fs.FileMode(0o755)
	if h.systemd() {
		text, mode = s.Unit(), 0o644
	}
	if mine, err := ours(file); err != nil || !mine {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err == nil {
			return "",
				fmt.Errorf("%s already exists and was not created by wherry: remove it, or choose another --name", file)
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	if err := replace(file, text, mode); err != nil {
		return "", err
	}
	for _, command := range h.begin(s.Name, now) {
		if err := h.Run(ctx, command...); err != nil {
			return "", fmt.Errorf("%s was written, but: %w", file, err)
		}
	}
	return file, nil
}

// begin are the commands that make the service known, started at boot and, if now, started.
func (h Host) begin(name string, now bool) (commands [][]string) {
	if h.systemd() {
		commands = [][]string{{"systemctl", "daemon-reload"}, {"systemctl", "enable", name + ".service"}}
		if now {
			commands = append(commands, []string{"systemctl", "restart", name + ".service"})
		}
		return commands
	}
	switch {
	case h.Has("update-rc.d"):
		commands = append(commands, []string{"update-rc.d", name, "defaults"})
	case h.Has("chkconfig"):
		commands = append(commands, []string{"chkconfig", "--add", name})
	case h.Has("rc-update"):
		commands = append(commands, []string{"rc-update", "add", name, "default"})
	}
	if now {
		commands = append(commands, []string{h.script(name), "restart"})
	}
	return commands
}

// StartsAtBoot reports whether the machine has a way to have a script started at boot.
func (h Host) StartsAtBoot() bool {
	return h.systemd() || h.Has("update-rc.d") || h.Has("chkconfig") || h.Has("rc-update")
}

// Remove stops the service of that name and takes it away. It reports whether there was one.
func (h Host) Remove(ctx context.Context, name string) (bool, error) {
	file := h.file(name)
	mine, err := ours(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !mine:
		return false, fmt.Errorf("%s was not created by wherry: nothing was removed", file)
	}
	before, after := h.end(name)
	for _, command := range before {
		if err := h.Run(ctx, command...); err != nil {
			return false, err
		}
	}
	if err := os.Remove(file); err != nil {
		return false, err
	}
	for _, command := range after {
		if err := h.Run(ctx, command...); err != nil {
			return true, err
		}
	}
	return true, nil
}

// end are the commands that end the service, before its file is removed and after.
func (h Host) end(name string) (before, after [][]string) {
	if h.systemd() {
		return [][]string{{"systemctl", "disable", "--now", name + ".service"}},
			[][]string{{"systemctl", "daemon-reload"}}
	}
	before = [][]string{{h.script(name), "stop"}}
	switch {
	case h.Has("update-rc.d"):
		after = [][]string{{"update-rc.d", name, "remove"}}
	case h.Has("chkconfig"):
		before = append(before, []string{"chkconfig", "--del", name})
	case h.Has("rc-update"):
		before = append(before, []string{"rc-update", "del", name, "default"})
	}
	return before, after
}

// ours reports whether a file is of wherry's making.
func ours(file string) (bool, error) {
	text, err := os.ReadFile(file)
	return strings.Contains(string(text), mark), err
}

// replace writes a file in one step.
func replace(file, text string, mode fs.FileMode) error {
	next := file + ".new"
	if err := os.WriteFile(next, []byte(text), mode); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(next, mode), os.Rename(next, file)); err != nil {
		_ = os.Remove(next)
		return err
	}
	return nil
}

// Trusted refuses a program that others than root could change: what a service starts, root runs.
func Trusted(program string) error {
	for path := program; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || stat.Uid != 0 || info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return fmt.Errorf("users other than root can modify %s, and the service would run it as root: install it with make install, and run the installed wherry", path)
		}
		if path == filepath.Dir(path) {
			return nil
		}
	}
}
