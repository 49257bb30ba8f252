// SPDX-License-Identifier: Apache-2.0

package systemlogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// longest is how long one answer may take.
const longest = 30 * time.Second

// Handler answers questions, and shows files and folders by their paths in the URL where nothing is asked.
type Handler struct {
	Folder  string // of files: /var/log
	Journal string // the program: journalctl
}

// ServeHTTP implements http.Handler.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !Asked(r.URL.Query()) {
		h.file(w, r, r.URL.Path)
		return
	}
	q, errs := Parse(r.URL.Query())
	if len(errs) > 0 {
		http.Error(w, errs.ToAggregate().Error(), http.StatusBadRequest)
		return
	}
	end := time.Now().Add(longest)
	ctx, cancel := context.WithDeadline(r.Context(), end)
	defer cancel()
	// The context does not end a write to somebody who does not read.
	_ = http.NewResponseController(w).SetWriteDeadline(end)
	if q.File != "" {
		h.file(w, r, q.File)
		return
	}
	w.Header().Set("Content-Type", "text/plain;charset=UTF-8")
	inJournal, inFiles := h.split(ctx, q.Services)
	if len(inJournal) > 0 {
		h.journal(ctx, w, q.arguments(inJournal))
	}
	if len(inFiles) > 0 && q.options() {
		fmt.Fprintf(w, "\noptions present and query resolved to log files for %v\ntry without specifying options\n",
			inFiles)
		return
	}
	for _, name := range inFiles {
		if err := h.first(ctx, w, name, name+".log", name+"/"+name+".log"); errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(w, "\nlog not found for %s\n", name)
		} else if err != nil {
			fmt.Fprintf(w, "\nerror getting log for %s: %v\n", name, err)
		}
	}
}

// file shows one file, or what is in a folder.
func (h Handler) file(w http.ResponseWriter, r *http.Request, name string) {
	root, err := os.OpenRoot(h.Folder)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	defer root.Close()
	r = r.Clone(r.Context())
	r.URL.Path = "/" + strings.TrimLeft(name, "/")
	http.FileServerFS(plain{root}).ServeHTTP(w, r)
}

// plain has the files and folders below a root, and nothing else of what may be there: to open a pipe would wait for
// somebody who writes into it.
type plain struct{ root *os.Root }

// Open implements fs.FS.
func (p plain) Open(name string) (fs.File, error) {
	f, err := p.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// split finds out which services write to the journal. Without one all are looked for in files.
func (h Handler) split(ctx context.Context, names []string) (inJournal, inFiles []string) {
	units, err := exec.CommandContext(ctx, h.Journal, "--field=_SYSTEMD_UNIT").Output()
	for _, name := range names {
		if err == nil && strings.Contains("\n"+string(units), "\n"+strings.TrimSuffix(name, ".service")+".service\n") {
			inJournal = append(inJournal, name)
		} else {
			inFiles = append(inFiles, name)
		}
	}
	return inJournal, inFiles
}

// journal shows what journalctl says; what it complains of is for the reader, too.
func (h Handler) journal(ctx context.Context, w io.Writer, args []string) {
	cmd := exec.CommandContext(ctx, h.Journal, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = w, w, time.Second
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		fmt.Fprintf(w, "\nerror: journal output not available: %v\n", err)
	}
}

// first shows the first of the files that there is.
func (h Handler) first(ctx context.Context, w io.Writer, names ...string) (err error) {
	for _, name := range names {
		if err = h.copy(ctx, w, name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

func (h Handler) copy(ctx context.Context, w io.Writer, name string) error {
	root, err := os.OpenRoot(h.Folder)
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := plain{root}.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() { // a folder of the service's name: its file may be in it
		return fmt.Errorf("%s is not a regular file: %w", name, fs.ErrNotExist)
	}
	stop := context.AfterFunc(ctx, func() { f.Close() })
	defer stop()
	_, err = io.Copy(w, f)
	return err
}
