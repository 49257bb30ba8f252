// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"bytes"
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
	"time"
)

// Apart has a child process read a database file: command, with the path as its last argument, which must come to
// [Child]. What kills the child is then what is wrong with the file. Its error is that of a child that could not be
// run, or ctx's.
func Apart(ctx context.Context, command []string, path string) (Database, error) {
	var out, words bytes.Buffer
	child := exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)], path)...)
	child.Stdout, child.Stderr = &out, &words
	child.WaitDelay = time.Second
	err := child.Run()
	if ctx.Err() != nil {
		return Database{}, ctx.Err()
	}
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return Database{}, fmt.Errorf("looking at %s: %w", path, err)
	}
	var d Database
	if jerr := json.Unmarshal(out.Bytes(), &d); err == nil && jerr == nil {
		return d, nil
	}
	d = Database{Exists: true, Size: 1, Err: oneLine(words.String())}
	if d.Err == "" {
		d.Err = strings.TrimSpace(fmt.Sprintf("it cannot be read: %v", err))
	}
	return d, nil
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
