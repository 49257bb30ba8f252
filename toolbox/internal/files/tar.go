// SPDX-License-Identifier: Apache-2.0

package files

import (
	"archive/tar"
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/wherryproject/wherry/toolbox/internal/accounts"
	"github.com/wherryproject/wherry/toolbox/internal/applet"
	"github.com/wherryproject/wherry/toolbox/internal/copying"
)

// tarrer is one run of tar.
type tarrer struct {
	*applet.Call
	names          accounts.Names
	verbose        int
	exclude        []string
	strip          int
	owners, stdout bool
	touch, umask   bool // files are as new as they are here; they get no more rights than others that are made here
}

// tarball is the command tar.
func tarball(c *applet.Call) error {
	if len(c.Args) > 0 && !strings.HasPrefix(c.Args[0], "-") {
		c.Args[0] = "-" + c.Args[0] // as tar xzf: letters without a dash
		c.Args = spread(c.Args)
	}
	t := &tarrer{Call: c}
	create, extract := c.Bool("c,create", "make an archive"), c.Bool("x,extract", "extract an archive")
	list := c.Bool("t,list", "list an archive")
	file := c.String("f,file", "FILE", "-", "the archive; - or none is standard input or output")
	zip := c.Bool("z,gzip", "gzip, when making; found out when reading")
	c.Do("j,bzip2", "bzip2, found out when reading", func() {})
	dir := c.String("C,directory", "FOLDER", "", "go there first")
	verbose := c.Count("v,verbose", "name the files; twice: with their details")
	exclude := c.Strings(",exclude", "GLOB", "leave these out")
	strip := c.Int(",strip-components", "N", 0, "leave out the first N parts of names")
	c.Do("p,preserve-permissions", "do not apply the umask (the default)", func() {})
	noOwner := c.Bool("o,no-same-owner", "files belong to who extracts them")
	c.Do(",numeric-owner", "numbers for owners (the default)", func() {})
	touch := c.Bool("m,touch", "files are as old as their extraction")
	umask := c.Bool(",no-same-permissions", "apply the umask")
	stdout := c.Bool("O,to-stdout", "write files to standard output")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	t.verbose, t.exclude, t.strip, t.owners, t.stdout = *verbose, *exclude, *strip, !*noOwner, *stdout
	t.touch, t.umask = *touch, *umask
	did := 0
	for _, b := range []*bool{create, extract, list} {
		if *b {
			did++
		}
	}
	if did != 1 {
		return applet.Usage("missing one of -c, -x and -t")
	}
	if *create {
		return t.create(*file, *dir, *zip)
	}
	in, err := c.Open(*file)
	if err != nil {
		return err
	}
	defer in.Close()
	if *dir != "" {
		if err := os.Chdir(*dir); err != nil {
			return err
		}
	}
	return t.read(in, *list)
}

// spread gives tar's old letters their values: "-xfC a b" is -x -f a -C b.
func spread(args []string) []string {
	values := args[1:]
	var out []string
	for _, letter := range args[0][1:] {
		out = append(out, "-"+string(letter))
		if strings.ContainsRune("fC", letter) && len(values) > 0 {
			out, values = append(out, values[0]), values[1:]
		}
	}
	return append(out, values...)
}

func (t *tarrer) create(file, dir string, zip bool) (err error) {
	if len(t.Args) == 0 {
		return applet.Usage("an empty archive is not made: name files")
	}
	out := os.Stdout
	if file != "-" {
		if out, err = os.Create(file); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, out.Close()) }()
		zip = zip || strings.HasSuffix(file, ".gz") || strings.HasSuffix(file, ".tgz")
	}
	self, _ := out.Stat()
	if dir != "" {
		if err := os.Chdir(dir); err != nil {
			return err
		}
	}
	var w io.Writer = out
	if zip {
		z := gzip.NewWriter(out)
		defer func() { err = errors.Join(err, z.Close()) }()
		w = z
	}
	p := copying.NewPacker(w)
	p.Problem = t.Warn
	p.Skip = func(name string, info fs.FileInfo) bool { return os.SameFile(info, self) || t.excluded(name) }
	p.Saw = func(h *tar.Header) {
		if t.verbose > 0 && file != "-" {
			t.line(h, t.verbose > 1)
		} else if t.verbose > 0 {
			fmt.Fprintln(t.Err, h.Name)
		}
	}
	for _, path := range t.Args {
		if _, err := os.Lstat(path); err != nil { // below, what is not there any more went away meanwhile
			t.Warn(err)
			continue
		}
		if err := p.Add(path, strings.TrimLeft(filepath.Clean(path), "/")); err != nil {
			return err
		}
	}
	return p.Close()
}

func (t *tarrer) excluded(name string) bool {
	return slices.ContainsFunc(t.exclude, func(pattern string) bool {
		whole, _ := filepath.Match(pattern, name)
		base, _ := filepath.Match(pattern, filepath.Base(name))
		return whole || base
	})
}

// line prints a file's name, or all about it.
func (t *tarrer) line(h *tar.Header, details bool) {
	if !details {
		t.Println(h.Name)
		return
	}
	owner := h.Uname
	if owner == "" {
		owner = t.names.User(h.Uid)
	}
	group := h.Gname
	if group == "" {
		group = t.names.Group(h.Gid)
	}
	name := h.Name
	switch h.Typeflag {
	case tar.TypeSymlink:
		name += " -> " + h.Linkname
	case tar.TypeLink:
		name += " link to " + h.Linkname
	}
	t.Printf("%s %s/%s %9d %s %s\n", Mode(h.FileInfo().Mode()), owner, group, h.Size,
		h.ModTime.Format("2006-01-02 15:04"), name)
}

// unzip finds out how an archive is compressed.
func unzip(in io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(in, 64<<10)
	switch head, _ := b.Peek(6); {
	case strings.HasPrefix(string(head), "\x1f\x8b"):
		return gzip.NewReader(b)
	case strings.HasPrefix(string(head), "BZh"):
		return bzip2.NewReader(b), nil
	case strings.HasPrefix(string(head), "\xfd7zXZ"), strings.HasPrefix(string(head), "\x28\xb5\x2f\xfd"):
		return nil, errors.New("the archive is compressed with xz or zstd, which is not known here")
	}
	return b, nil
}

// read lists or extracts an archive.
func (t *tarrer) read(in io.Reader, list bool) error {
	archive, err := openArchive(in)
	if err != nil {
		return err
	}
	var u *copying.Unpacker
	if !list && !t.stdout {
		if u, err = t.unpacker(); err != nil {
			return err
		}
		defer u.Close()
	}
	mask := t.mask()
	hit := map[string]bool{}
	for {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if !t.wanted(h.Name, hit) || t.excluded(strings.TrimSuffix(h.Name, "/")) || !t.shorten(h) {
			continue
		}
		switch {
		case list:
			t.line(h, t.verbose > 0)
			continue
		case t.stdout:
			_, err = io.Copy(t.Out, archive)
		default:
			err = t.extract(u, h, archive, mask)
		}
		if err != nil {
			t.Warn(err)
		}
	}
	for _, a := range t.Args {
		if !hit[a] {
			t.Warn(fmt.Errorf("%s is not in the archive", a))
		}
	}
	if u != nil {
		return u.Finish()
	}
	return nil
}

// openArchive finds out how an archive is compressed. An empty one is an error.
func openArchive(in io.Reader) (*tar.Reader, error) {
	plain, err := unzip(in)
	if err != nil {
		return nil, err
	}
	b := bufio.NewReader(plain)
	if _, err := b.Peek(1); err == io.EOF {
		return nil, errors.New("the archive is empty")
	}
	return tar.NewReader(b), nil
}

// unpacker puts files into this folder.
func (t *tarrer) unpacker() (*copying.Unpacker, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	u, err := copying.NewUnpacker("/", here)
	if err != nil {
		return nil, err
	}
	u.Owners = t.owners && syscall.Geteuid() == 0
	return u, nil
}

// mask has the rights that files do not get.
func (t *tarrer) mask() int64 {
	if !t.umask {
		return 0
	}
	return int64(currentUmask())
}

// extract makes one file of an archive.
func (t *tarrer) extract(u *copying.Unpacker, h *tar.Header, content io.Reader, mask int64) error {
	if t.verbose > 0 {
		t.line(h, t.verbose > 1)
	}
	h.Mode &^= mask
	if t.touch {
		h.ModTime = time.Time{}
	}
	return u.Put(h, content)
}

func (t *tarrer) wanted(name string, hit map[string]bool) bool {
	if len(t.Args) == 0 {
		return true
	}
	for _, a := range t.Args {
		if n := strings.TrimSuffix(name, "/"); n == strings.TrimSuffix(a, "/") ||
			strings.HasPrefix(n, strings.TrimSuffix(a, "/")+"/") {
			hit[a] = true
			return true
		}
	}
	return false
}

// shorten takes the first parts off a name, and absolute names' slash; false if nothing is left.
func (t *tarrer) shorten(h *tar.Header) bool {
	cut := func(name string) string {
		parts := strings.Split(strings.TrimLeft(name, "/"), "/")
		return strings.Join(parts[min(t.strip, len(parts)):], "/")
	}
	h.Name = cut(h.Name)
	if h.Typeflag == tar.TypeLink {
		h.Linkname = cut(h.Linkname)
	}
	return h.Name != ""
}
