// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/copyfiles"
	"github.com/wherryproject/wherry/internal/podspec"
)

// cpFlags are what `wherry cp` is told.
type cpFlags struct {
	clientFlags
	container string
	quiet     bool
}

func newCp(t Terminal) *cobra.Command {
	f := &cpFlags{}
	cmd := &cobra.Command{
		Use:   "cp SOURCE DESTINATION",
		Short: "Copy files out of and into containers, also dead ones, and such without tar",
		Long: `Copy a file or a folder out of a container, or into one. One of the two is POD:PATH, or NAMESPACE/POD:PATH.

Nothing is needed in the container: no tar, no shell, and it need not run. It is the filesystem of its last run that is read, with
its volumes. An existing folder as the destination is copied into; else the destination is the copy's name. With - as the
destination a tar archive goes to standard output.

Modes, times and links are kept; owners are the user's own on this machine, root in the container. Files of the same name are
replaced. Symbolic links are not followed out of the container.`,
		Example: `  wherry cp web:/etc/nginx/nginx.conf .
  wherry cp web:/var/lib/data ./data -c db
  wherry cp ./fixed.conf web:/etc/app/app.conf
  wherry cp crashed:/tmp/core.1 .                        # a container in a crash loop
  wherry cp web:/srv - | tar -tv`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), t, args[0], args[1]) },
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&f.container, "container", "c", "", "the container; default: the pod's default one, or its first")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	return cmd
}

// place is one side of a copy.
type place struct {
	namespace, pod string // empty: this machine
	path           string
}

// parsePlace reads PATH or [NAMESPACE/]POD:PATH. What begins with a slash, a dot or a tilde is a path, also with a colon in it.
func parsePlace(text string) (place, error) {
	before, after, colon := strings.Cut(text, ":")
	if !colon || before == "" || strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") || strings.HasPrefix(text, "~") {
		return place{path: text}, nil
	}
	p := place{pod: before, path: after}
	if namespace, pod, ok := strings.Cut(before, "/"); ok {
		p.namespace, p.pod = namespace, pod
	}
	switch {
	case p.pod == "" || strings.Contains(p.pod, "/"):
		return p, fmt.Errorf("%q: want POD:PATH or NAMESPACE/POD:PATH", text)
	case after == "":
		return p, fmt.Errorf("%q: which path in the pod?", text)
	}
	return p, nil
}

func (f *cpFlags) run(ctx context.Context, t Terminal, source, destination string) error {
	from, err := parsePlace(source)
	if err != nil {
		return &Exit{exitUsage, err}
	}
	to, err := parsePlace(destination)
	if err != nil {
		return &Exit{exitUsage, err}
	}
	remote := from
	switch {
	case (from.pod == "") == (to.pod == ""):
		return &Exit{exitUsage, errors.New("one of source and destination must be in a pod (POD:PATH), the other on this machine")}
	case from.pod == "":
		remote = to
	}
	c, err := f.connect()
	if err != nil {
		return err
	}
	if remote.namespace != "" {
		f.Namespace = remote.namespace
	}
	pod, err := c.CoreV1().Pods(f.Namespace).Get(ctx, remote.pod, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if f.container, err = chosenContainer(pod, f.container); err != nil {
		return err
	}
	if from.pod != "" {
		return f.out(ctx, t, c, from, to.path)
	}
	return f.in(ctx, t, c, from.path, to)
}

// chosenContainer is the container that is named, else the pod's default one, as kubectl has it, else its first.
func chosenContainer(pod *corev1.Pod, name string) (string, error) {
	if name == "" {
		name = pod.Annotations["kubectl.kubernetes.io/default-container"]
	}
	if name == "" {
		return pod.Spec.Containers[0].Name, nil
	}
	if _, ok := podspec.FindContainer(&pod.Spec, name); !ok {
		return "", fmt.Errorf("pod %s has no container %s", pod.Name, name)
	}
	return name, nil
}

// toolbox is a request for one of the toolbox's commands on the container's files.
func (f *cpFlags) toolbox(ctx context.Context, t Terminal, c *client, pod string, writable bool, command ...string) (code int, err error) {
	return c.stream(ctx, t, f.Namespace, ask.Toolbox(pod, writable, t.In != nil, command...), nil)
}

// said is the outcome of a command that has told its troubles by itself.
func said(code int, err error) error {
	if err == nil && code != 0 {
		return &Exit{Code: 1}
	}
	return exitWith(code, err)
}

func (f *cpFlags) root() string { return "/c/" + f.container }

// out copies from the container.
func (f *cpFlags) out(ctx context.Context, t Terminal, c *client, from place, to string) error {
	meter := newMeter(t, f.quiet)
	defer meter.stop()
	command := []string{"/bin/toolbox", "cp-pack", "--root", f.root(), from.path}
	if to == "-" {
		return said(f.toolbox(ctx, Terminal{Out: meter.writer(t.Out), Err: t.Err}, c, from.pod, false, command...))
	}
	folder, name, err := localTarget(to, path.Base(path.Clean("/"+from.path)))
	if err != nil {
		return err
	}
	r, w := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		made, err := copyfiles.Unpack(r, folder, name, f.skipped(t))
		if err == nil {
			_, err = io.Copy(io.Discard, r) // the padding after the archive's end
		} else if made == 0 && errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil // nothing came: the other side says why
		}
		r.CloseWithError(err)
		unpacked <- err
	}()
	err = said(f.toolbox(ctx, Terminal{Out: meter.writer(w), Err: t.Err}, c, from.pod, false, command...))
	_ = w.CloseWithError(err) // a pipe's Close does not fail
	return errors.Join(err, ignore(<-unpacked, err))
}

// ignore drops an error that only follows from another.
func ignore(err, cause error) error {
	if cause != nil {
		return nil
	}
	return err
}

// localTarget is where a copy named base goes: into an existing folder, else it takes the destination's name.
func localTarget(to, base string) (folder, name string, err error) {
	info, err := os.Stat(to)
	switch {
	case err == nil && info.IsDir() && base == "/":
		return to, ".", nil
	case err == nil && info.IsDir():
		return to, base, nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return "", "", err
	case strings.HasSuffix(to, "/"):
		return "", "", fmt.Errorf("there is no folder %s", to)
	}
	abs, err := filepath.Abs(to)
	if err != nil {
		return "", "", err
	}
	return filepath.Dir(abs), filepath.Base(abs), nil
}

// in copies into the container.
func (f *cpFlags) in(ctx context.Context, t Terminal, c *client, from string, to place) error {
	abs, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(abs); err != nil {
		return err
	}
	folder, name, err := f.remoteTarget(ctx, c, to, filepath.Base(abs))
	if err != nil {
		return err
	}
	meter := newMeter(t, f.quiet)
	defer meter.stop()
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := copyfiles.Pack(meter.writer(w), abs, name, f.skipped(t))
		_ = w.CloseWithError(err) // a pipe's Close does not fail
		packed <- err
	}()
	err = said(f.toolbox(ctx, Terminal{In: r, Out: t.Out, Err: t.Err}, c, to.pod, true, "/bin/toolbox", "cp-unpack", "--root", f.root(), folder))
	_ = r.CloseWithError(io.ErrClosedPipe) // ends the packing if the other side gave up
	if perr := <-packed; perr != nil && !errors.Is(perr, io.ErrClosedPipe) {
		return errors.Join(perr, err)
	}
	return err
}

// notThere is the exit code by which the toolbox says that a path does not exist, or is no folder.
const notThere = 3

// remoteTarget is where a copy named base goes: into an existing folder, else it takes the destination's name. Whether it is a
// folder is seen by unpacking nothing into it.
func (f *cpFlags) remoteTarget(ctx context.Context, c *client, to place, base string) (folder, name string, err error) {
	var nothing, trouble bytes.Buffer
	if err := tar.NewWriter(&nothing).Close(); err != nil {
		return "", "", err
	}
	code, err := f.toolbox(ctx, Terminal{In: &nothing, Out: io.Discard, Err: &trouble}, c, to.pod, true, "/bin/toolbox", "cp-unpack", "--root", f.root(), to.path)
	switch {
	case err != nil:
		return "", "", exitWith(code, err)
	case code == 0:
		return to.path, base, nil
	case code == notThere && strings.HasSuffix(to.path, "/"):
		return "", "", fmt.Errorf("container %s of pod %s has no folder %s", f.container, to.pod, to.path)
	case code == notThere:
		return path.Dir(to.path), path.Base(to.path), nil
	}
	return "", "", errors.New(strings.TrimSpace(trouble.String()))
}

func (f *cpFlags) skipped(t Terminal) func(path, why string) {
	return func(path, why string) { fmt.Fprintf(t.Err, "left out: %s: %s\n", path, why) }
}
