// SPDX-License-Identifier: Apache-2.0

package capturing

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/wherryproject/wherry/internal/capture"
	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/onhost"
	"github.com/wherryproject/wherry/internal/debug/evidence"
	"github.com/wherryproject/wherry/internal/hostdebug/session"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// machine is a container, a process or a unit of this machine.
type machine struct {
	c     *onhost.Copier
	files []string
}

func (f *flags) onMachine(ctx context.Context, to target.Target) (source, error) {
	c, err := f.host.Copier(ctx, to, "")
	if err != nil {
		return nil, err
	}
	m := &machine{c: c}
	for _, file := range f.files {
		container, path := splitFile(file)
		if container != "" && container != c.Name {
			return nil, cmdline.ExitWith(cmdline.ExitUsage, fmt.Errorf("--file %s: %s is one container: leave out %s:",
				file, to, container))
		}
		m.files = append(m.files, path)
	}
	return m, nil
}

func (m *machine) name() string { return m.c.Name }

func (m *machine) describe(to *capture.Manifest) {
	to.Target, to.UID = m.c.Container.Target.String(), m.c.Container.ID
}

const machineLog = 10_000 // lines

func (m *machine) parts(f *flags) []part {
	c := m.c.Container
	all := []part{{"its state", func(_ context.Context, w *capture.Writer) error {
		text, err := session.StatusJSON(c)
		if err != nil {
			w.Miss(capture.StatusFile, err)
			return nil
		}
		return w.Text(capture.StatusFile, text)
	}}, {"its log", func(ctx context.Context, w *capture.Writer) error {
		return addStream(w, capture.Logs+"/"+m.c.Name+".log",
			func() (io.ReadCloser, error) { return c.Log(ctx, machineLog) })
	}}}
	if f.secrets {
		all = append(all, part{"its environment", func(_ context.Context, w *capture.Writer) error {
			return w.Text("env", evidence.EnvText(c.Env))
		}})
	}
	folder := capture.Containers + "/" + m.c.Name
	all = append(all, part{"its processes", func(ctx context.Context, w *capture.Writer) error {
		if !c.Alive() {
			w.Miss("processes", errors.New("it does not run"))
			return nil
		}
		return addCommand(ctx, w, folder, m.run, m.processes(f.secrets)...)
	}})
	for _, file := range m.files {
		all = append(all, part{"files " + file, func(ctx context.Context, w *capture.Writer) error {
			return addCommand(ctx, w, filesAt(m.c.Name, file), m.run, fileOf(m.c.Name, file).Command()...)
		}})
	}
	return append(all, kernelPart(c.ID))
}

func (m *machine) run(ctx context.Context, t cmdline.Terminal, command ...string) (int, error) {
	return m.c.Run(ctx, t, false, command...)
}

// processes is the command that packs what the kernel shows of processes.
func processes(secrets bool) []string {
	command := []string{"/bin/toolbox", "proc-pack"}
	if secrets {
		command = append(command, "--environment")
	}
	return command
}

// processes is the command for a target: one that is in this machine's own PID namespace is not alone in it, and only
// it and what it has begun is meant.
func (m *machine) processes(secrets bool) []string {
	command := processes(secrets)
	if pid := m.c.Container.PID; sameNamespace("/proc/self/ns/pid", fmt.Sprintf("/proc/%d/ns/pid", pid)) {
		command = append(command, "--tree", strconv.Itoa(pid))
	}
	return command
}

func sameNamespace(one, other string) bool {
	a, aerr := os.Stat(one)
	b, berr := os.Stat(other)
	return aerr == nil && berr == nil && os.SameFile(a, b)
}

// fileOf is the archive of a file of a container; a link is followed within it.
func fileOf(container, path string) ask.Archive {
	return ask.Archive{Container: container, Path: path, Follow: true}
}

// filesAt is the folder of a bundle for a file of a container: as it lies in the container.
func filesAt(container, file string) string {
	return path.Join("files", container, path.Dir(path.Clean("/"+file)))
}

// mostLog bounds a log.
const mostLog = 8 << 20

// addStream adds the end of what is read, a log, within its bound.
func addStream(w *capture.Writer, name string, open func() (io.ReadCloser, error)) error {
	r, err := open()
	if err != nil {
		w.Miss(name, err)
		return nil
	}
	defer r.Close()
	broken, err := w.End(name, r, mostLog)
	if broken != nil {
		w.Miss(name+", its rest", broken)
	}
	return err
}

// matches is the folder in which the archive that a command writes has all, which the bundle is to have without: that
// of what fits a pattern.
func matches(command []string) string {
	if strings.ContainsAny(path.Base(command[len(command)-1]), "*?[") {
		return "matches/"
	}
	return ""
}

// mostWords bounds what is kept of what a command says: it has a line for each of a container's files.
const mostWords = 64 << 10

// words keeps the beginning of what is written.
type words struct{ bytes.Buffer }

func (w *words) Write(p []byte) (int, error) {
	_, _ = w.Buffer.Write(p[:min(len(p), max(mostWords-w.Len(), 0))]) // a Buffer takes everything
	return len(p), nil
}

// addCommand adds the archive that a command of the toolbox writes.
func addCommand(ctx context.Context, w *capture.Writer, folder string,
	run func(ctx context.Context, t cmdline.Terminal, command ...string) (int, error), command ...string) error {
	r, out := io.Pipe()
	var stderr words
	ended := make(chan error, 1)
	go func() {
		code, err := run(ctx, cmdline.Terminal{Out: out, Err: &stderr}, command...)
		if err == nil && code != 0 {
			err = fmt.Errorf("exit code %d", code)
		}
		_ = out.CloseWithError(err) // nil is its end; it does not fail
		ended <- err
	}()
	broken, err := w.Archive(folder, matches(command), r)
	if err != nil {
		_ = r.CloseWithError(err) // the command finds nobody who reads
		<-ended
		return err
	}
	_, _ = io.Copy(io.Discard, r) // the padding after the archive's end
	cause := <-ended
	if text := strings.TrimSpace(stderr.String()); text != "" {
		broken = errors.New(strings.ReplaceAll(text, "\n", "; "))
	}
	if why := cmp.Or(broken, cause); why != nil {
		w.Miss(folder+" (a part, or all)", why)
	}
	return nil
}
