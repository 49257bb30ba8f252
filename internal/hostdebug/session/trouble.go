// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/exitcode"
	"github.com/wherryproject/wherry/internal/mountfd"
)

// maxRuncLog bounds what is read of runc's log.
const maxRuncLog = 1 << 20

// runcTrouble is runc's message about why it could not start the command; empty if it could.
func runcTrouble(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return lastError(text[:min(len(text), maxRuncLog)])
}

// lastError is the last error in runc's log, without the steps that lead to it.
func lastError(log []byte) string {
	last := ""
	for line := range bytes.Lines(log) {
		var entry struct{ Level, Msg string }
		if json.Unmarshal(line, &entry) == nil && (entry.Level == "error" || entry.Level == "fatal") {
			last = entry.Msg
		}
	}
	for _, prefix := range []string{"runc run failed: ", "unable to start container process: ",
		"error during container init: "} {
		last = strings.TrimPrefix(last, prefix)
	}
	return last
}

// runnable returns a shell's message and exit code if a process cannot be run from a root filesystem.
func runnable(ctx context.Context, root string, p *specs.Process) (code int, err error) {
	if len(p.Args) == 0 {
		return exitcode.CannotRun, errors.New("no command: the image has none of its own, so give one after --")
	}
	name, dirs := p.Args[0], []string{p.Cwd}
	if strings.HasPrefix(name, "/") {
		dirs = []string{"/"}
	} else if !strings.Contains(name, "/") {
		dirs = strings.Split(pathOf(p.Env), ":")
	}
	at, err := os.OpenFile(root, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return 0, err
	}
	defer at.Close()
	tries := mountfd.MostTries
	found := false
	for _, dir := range dirs {
		f, err := mountfd.Within(ctx, at, filepath.Join("/", dir, name), &tries)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		f.Close()
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return 0, nil
		}
		found = true
	}
	if found {
		return exitcode.CannotRun, fmt.Errorf("%s: it is not a program", name)
	}
	return exitcode.NotFound, fmt.Errorf("%s: there is no such command in the debugger's image", name)
}

func pathOf(env []string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], "PATH="); ok {
			return value
		}
	}
	return ""
}
