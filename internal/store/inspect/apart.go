// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// Apart has a child process read a database file: command, with the path as its last argument, which must come to
// [Child]. What kills the child is then what is wrong with the file. Its error is that of a child that could not be
// run, or ctx's.
func Apart(ctx context.Context, command []string, path string) (Database, error) {
	// Files, not buffers: nothing has to be copied, by goroutines whose order is the child's to decide.
	out, err := inMemory("facts")
	if err != nil {
		return Database{}, fmt.Errorf("looking at %s: %w", path, err)
	}
	defer out.Close()
	words, err := inMemory("words")
	if err != nil {
		return Database{}, fmt.Errorf("looking at %s: %w", path, err)
	}
	defer words.Close()
	child := exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)], path)...)
	child.Stdout, child.Stderr = out, words
	err = child.Run()
	if ctx.Err() != nil {
		return Database{}, ctx.Err()
	}
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return Database{}, fmt.Errorf("looking at %s: %w", path, err)
	}
	var d Database
	if jerr := json.Unmarshal(text(out), &d); err == nil && jerr == nil {
		return d, nil
	}
	d = Database{Exists: true, Size: 1, Err: oneLine(string(text(words)))}
	if d.Err == "" {
		d.Err = strings.TrimSpace(fmt.Sprintf("it cannot be read: %v", err))
	}
	return d, nil
}

// inMemory is a file that is nowhere.
func inMemory(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// mostText is how much of what a child says is read.
const mostText = 1 << 20

func text(f *os.File) []byte {
	all, _ := io.ReadAll(io.NewSectionReader(f, 0, mostText)) // what cannot be read was not said
	return all
}

// LookApart is [Look] with the database read by a child process, or, without a command, in this one.
func LookApart(ctx context.Context, command []string, dir string) (Facts, error) {
	if len(command) == 0 {
		return Look(dir), nil
	}
	f := Facts{Dir: dir, Log: lookAtLog(dir)}
	if _, err := os.Lstat(DatabaseFile(dir)); errors.Is(err, fs.ErrNotExist) {
		f.DB = LookAtDatabase(DatabaseFile(dir)) // of a first start, which need not wait for a child
		return f, nil
	}
	var err error
	f.DB, err = Apart(ctx, command, DatabaseFile(dir))
	return f, err
}

// maxStack bounds what a database whose pages refer to one another in a circle can take of the child's memory.
const maxStack = 64 << 20

// Child is what the child process does: it reads a database file and writes what it found.
func Child(w io.Writer, path string) error {
	debug.SetMaxStack(maxStack)
	debug.SetTraceback("none")
	return json.NewEncoder(w).Encode(LookAtDatabase(path))
}
