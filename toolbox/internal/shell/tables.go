// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"
)

// descriptors are the shell's files from 3 on; the interpreter knows the first three only. The shell has a table of
// them and every subshell another one, whose name is in a variable: the interpreter gives subshells variables of their
// own.
type descriptors struct {
	mu      sync.Mutex
	changed *sync.Cond
	tables  map[string]*table // the shell's own has no name
	last    int
}

// tableName is the variable with the name of a subshell's table.
const tableName = "_descriptors"

// table is the files of one shell or subshell.
type table struct {
	open   map[int]*os.File
	hidden []*hiding // what redirections hide, the last one at the end
	// pipelines, by number, whose first part has taken its copy, and their last one has not begun
	parted map[string]int
	undo   map[string]func() // gives back what the subshell has changed of the process
}

// atEnd has something of the process given back when the subshell ends that is about to change it; what is given back
// is what was there before its first change. The process is one for all: meanwhile it is changed for others, too.
func (d *descriptors) atEnd(hc interp.HandlerContext, what string, undo func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.of(hc)
	if t == d.tables[""] || t.undo[what] != nil {
		return
	}
	if t.undo == nil {
		t.undo = map[string]func(){}
	}
	t.undo[what] = undo
}

// hiding is what a redirection hides until its command has ended; the file is nil where there was none.
type hiding struct {
	n    int
	file *os.File
}

func newDescriptors() *descriptors {
	d := &descriptors{tables: map[string]*table{"": {open: map[int]*os.File{}}}}
	d.changed = sync.NewCond(&d.mu)
	return d
}

// of is the table of whoever runs now. The lock is held.
func (d *descriptors) of(hc interp.HandlerContext) *table {
	if t := d.tables[hc.Env.Get(tableName).String()]; t != nil {
		return t
	}
	return d.tables[""]
}

func (t *table) put(n int, f *os.File) {
	if old := t.open[n]; old != nil {
		old.Close()
	}
	if delete(t.open, n); f != nil {
		t.open[n] = f
	}
}

// copied is every file opened again.
func (t *table) copied() (map[int]*os.File, error) {
	out := map[int]*os.File{}
	for n, f := range t.open {
		c, err := again(f)
		if err != nil {
			closeAll(out)
			return nil, err
		}
		out[n] = c
	}
	return out, nil
}

func closeAll(files map[int]*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// giveBack ends a redirection and those that came after it: the interpreter ends those of a command in the order they
// were begun in.
func (t *table) giveBack(h *hiding) {
	if !slices.Contains(t.hidden, h) {
		return
	}
	for {
		last := t.hidden[len(t.hidden)-1]
		t.hidden = t.hidden[:len(t.hidden)-1]
		if t.put(last.n, last.file); last == h {
			return
		}
	}
}

// mark stands in the name of a file that is none: behind what a redirection opens, before what it is. The interpreter
// closes such a file when its command has ended, in whatever way: that is when the redirection ends.
const mark = "\x01"

// marked is the end of such a name: a verb, and what it needs to know.
//
//	push  N OP   descriptor N is what stands before
//	own   N      what is in the command has a table of its own; N is a pipeline's number, if the command is a part of it that is not the last
//	keep  N      the table is as it was when the command has ended: the last part of pipeline N, which the shell runs itself
//	gather       the command is all of a substitution
//	both         what stands before is opened to read and to write
//	last         the command is the last part of a pipeline: no trap is run when it is called
//	late         no trap is run when the command is called: one may have become due by what is substituted in it
func marked(verb, number, op string) string { return mark + verb + mark + number + mark + op }

// begin begins a redirection with a mark. It leaves standard output as it is, but for its end.
func (d *descriptors) begin(ctx context.Context, path string) (io.ReadWriteCloser, error) {
	hc := interp.HandlerCtx(ctx)
	parts := strings.Split(path, mark)
	if len(parts) < 4 {
		return nil, &os.PathError{Op: "open", Path: path, Err: unix.ENOENT}
	}
	at := len(parts) - 3
	verb, number, op := parts[at], parts[at+1], parts[at+2]
	out := &stream{to: hc.Stdout, end: func() {}}
	if f, ok := plain(hc.Stdout).(*os.File); ok {
		out.to = f
	} else if verb == "gather" || verb == "own" && gathered(hc.Stdout) == nil {
		out.gathers, out.to = ctx, &writer{to: hc.Stdout}
	}
	var err error
	switch verb {
	case "both":
		var f *os.File
		if f, err = d.file(ctx, "<>", strings.Join(parts[:at], mark)); err == nil {
			return f, nil
		}
	case "push":
		err = d.push(ctx, out, number, op, strings.Join(parts[:at], mark))
	case "own":
		err = d.own(hc, out, number)
	case "keep":
		err = d.keep(ctx, hc, out, number)
	case "last", "late":
		out.last.Store(true)
	}
	if err == nil {
		return out, nil
	} else if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var of *os.PathError // the only one that does not end the shell
	if errors.As(err, &of) {
		return nil, &os.PathError{Op: "sh: " + of.Op, Path: of.Path, Err: of.Err}
	}
	return nil, &os.PathError{Op: "sh: open", Path: descriptorDir + number, Err: err}
}

func (d *descriptors) push(ctx context.Context, out *stream, number, op, word string) error {
	n, file, err := d.opened(ctx, number, op, word)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.of(interp.HandlerCtx(ctx))
	h := &hiding{n, t.open[n]}
	t.hidden = append(t.hidden, h)
	delete(t.open, n)
	t.put(n, file)
	out.end = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		t.giveBack(h)
	}
	return nil
}

func (d *descriptors) own(hc interp.HandlerContext, out *stream, pipeline string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.of(hc)
	if pipeline != "" { // also if it fails: the last part waits for it
		if t.parted == nil {
			t.parted = map[string]int{}
		}
		t.parted[pipeline]++
		d.changed.Broadcast()
	}
	files, err := t.copied()
	if err != nil {
		return err
	}
	d.last++
	name := strconv.Itoa(d.last)
	own := &table{open: files}
	d.tables[name] = own
	out.table = name
	out.end = func() {
		for _, undo := range own.undo {
			undo()
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, h := range own.hidden {
			if h.file != nil {
				h.file.Close()
			}
		}
		closeAll(own.open)
		delete(d.tables, name)
	}
	return nil
}

func (d *descriptors) keep(ctx context.Context, hc interp.HandlerContext, out *stream, pipeline string) error {
	defer context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.changed.Broadcast()
	})()
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.of(hc)
	for t.parted[pipeline] == 0 && ctx.Err() == nil {
		d.changed.Wait()
	}
	if t.parted[pipeline]--; t.parted[pipeline] <= 0 {
		delete(t.parted, pipeline)
	}
	files, err := t.copied()
	if err != nil {
		return err
	}
	out.end = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		closeAll(t.open)
		clear(t.open)
		maps.Copy(t.open, files)
	}
	return nil
}

// enter is the first command of a subshell: from then on it has the table that a redirection made for it. $? stays what
// it was.
func enter(hc interp.HandlerContext) string {
	code := subshell + "=1" // before any other command of it, which would run the shell's traps
	if out, ok := hc.Stdout.(*stream); ok {
		code += "; " + tableName + "=" + out.table
	}
	if hc.LastExitStatus != 0 {
		code += fmt.Sprintf("; "+inner+"status %d", hc.LastExitStatus)
	}
	return code
}

// callsLast tells, once, whether the command that is called is the last part of a pipeline, or one with substitutions.
// What it calls itself is not.
func callsLast(hc interp.HandlerContext) bool {
	out, ok := hc.Stdout.(*stream)
	return ok && out.last.CompareAndSwap(true, false)
}
