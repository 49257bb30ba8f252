// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/wherryproject/wherry/internal/ociimage"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mkimage:", err)
		os.Exit(1)
	}
}

// list collects a flag that may be given many times.
type list []string

func (l *list) String() string     { return strings.Join(*l, " ") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func run(args []string) error {
	var (
		s                    ociimage.Spec
		refs, files, labels  list
		links, trees         list
		entrypoint, cmd, env list
		exposed, volumes     list
	)
	flags := flag.NewFlagSet("mkimage", flag.ContinueOnError)
	out := flags.String("o", "", "archive to write")
	flags.Var(&refs, "ref", "name of the image, as registry/name:tag; may be repeated")
	flags.Var(&files, "file", "SRC=DST[:MODE], a file to put in; an empty SRC makes a folder; may be repeated")
	flags.Var(&trees, "tree", "folder whose contents are put in at the image's root; may be repeated")
	flags.Var(&links, "link", "TARGET=PATH, a symbolic link to put in; may be repeated")
	flags.Var(&entrypoint, "entrypoint", "one word of the entry point; may be repeated")
	flags.Var(&cmd, "cmd", "one word of the default arguments; may be repeated")
	flags.Var(&env, "env", "NAME=value; may be repeated")
	flags.Var(&exposed, "exposed", "port, as 80/tcp; may be repeated")
	flags.Var(&volumes, "volume", "path of an anonymous volume; may be repeated")
	flags.Var(&labels, "label", "NAME=value; may be repeated")
	flags.StringVar(&s.User, "user", "", "user: name, uid or uid:gid")
	flags.StringVar(&s.WorkingDir, "workdir", "", "working directory")
	flags.StringVar(&s.StopSignal, "stop-signal", "", "signal that stops it, as SIGTERM")
	flags.StringVar(&s.Architecture, "arch", "", "architecture, as GOARCH; default: this machine's")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || len(refs) == 0 || flags.NArg() > 0 {
		return errors.New("usage: mkimage -o OUT.tar -ref NAME:TAG [-file SRC=DST[:MODE]]… (see -h)")
	}
	s.Entrypoint, s.Cmd, s.Env, s.ExposedPorts, s.Volumes = entrypoint, cmd, env, exposed, volumes
	for _, l := range labels {
		k, v, ok := strings.Cut(l, "=")
		if !ok {
			return fmt.Errorf("label %q: want NAME=value", l)
		}
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		s.Labels[k] = v
	}
	var err error
	if s.Files, err = contents(files, trees, links); err != nil {
		return err
	}
	return write(*out, s, refs)
}

// contents are what the flags -file, -tree and -link put in.
func contents(files, trees, links list) (all []ociimage.File, err error) {
	for _, f := range files {
		file, err := parseFile(f)
		if err != nil {
			return nil, err
		}
		all = append(all, file)
	}
	for _, dir := range trees {
		files, err := readTree(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	for _, l := range links {
		target, path, ok := strings.Cut(l, "=")
		if !ok {
			return nil, fmt.Errorf("link %q: want TARGET=PATH", l)
		}
		all = append(all, ociimage.File{Path: path, Mode: fs.ModeSymlink | 0o777, Data: []byte(target)})
	}
	return all, nil
}

// parseFile reads SRC=DST[:MODE].
func parseFile(arg string) (ociimage.File, error) {
	src, dst, ok := strings.Cut(arg, "=")
	if !ok {
		return ociimage.File{}, fmt.Errorf("file %q: want SRC=DST[:MODE]", arg)
	}
	f := ociimage.File{Path: dst}
	if path, mode, ok := strings.Cut(dst, ":"); ok {
		m, err := strconv.ParseUint(mode, 8, 12)
		if err != nil {
			return f, fmt.Errorf("file %q: mode %q is not octal", arg, mode)
		}
		f.Path, f.Mode = path, fs.FileMode(m&0o777)
		if m&0o4000 != 0 {
			f.Mode |= fs.ModeSetuid
		}
		if m&0o1000 != 0 {
			f.Mode |= fs.ModeSticky
		}
	}
	if src == "" {
		f.Mode |= fs.ModeDir
		return f, nil
	}
	data, err := os.ReadFile(src)
	if err != nil {
		return f, err
	}
	f.Data = data
	return f, nil
}

// readTree reads all that is below a folder.
func readTree(dir string) (all []ociimage.File, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		f := ociimage.File{Path: strings.TrimPrefix(path, dir), Mode: info.Mode()}
		switch {
		case entry.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			f.Data = []byte(target)
			all = append(all, f)
			return err
		case entry.IsDir():
		case entry.Type().IsRegular():
			if f.Data, err = os.ReadFile(path); err != nil {
				return err
			}
		default:
			return fmt.Errorf("tree %s: %s is neither a file, a folder nor a link", dir, path)
		}
		all = append(all, f)
		return nil
	})
	return all, err
}

// write makes the archive in one step, so that make never sees half of one.
func write(out string, s ociimage.Spec, refs []string) error {
	img, err := ociimage.Build(s)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(out), ".mkimage-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	err = ociimage.WriteTar(tmp, img, refs...)
	if err := errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), out)
}
