// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bufio"
	"compress/gzip"
	"crypto/md5"  //nolint:gosec // md5sum is what it is
	"crypto/sha1" //nolint:gosec // as above
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

func sums(c *applet.Call) error {
	check := c.Bool("c,check", "check the sums in these files")
	quiet, warn := c.Bool("s,status", "with -c: exit code only"),
		c.Bool("w,warn", "with -c: name the lines that are not sums")
	c.Bool("b,binary", "does nothing")
	c.Bool("t,text", "does nothing")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	sums := map[string]func() hash.Hash{
		"md5sum": md5.New, "sha1sum": sha1.New, "sha256sum": sha256.New, "sha512sum": sha512.New,
	}
	begin := sums[c.Name]
	sum := func(r io.Reader) (string, error) {
		h := begin()
		_, err := io.Copy(h, r)
		return hex.EncodeToString(h.Sum(nil)), err
	}
	return c.Each(c.Args, func(name string, r io.Reader) error {
		if !*check {
			text, err := sum(r)
			if err == nil {
				c.Printf("%s  %s\n", text, name)
			}
			return err
		}
		return checkSums(c, name, r, sum, *quiet, *warn)
	})
}

// checkSums reads a list of sums and checks them. Lines that are none are passed over, but one there must be.
func checkSums(c *applet.Call, list string, r io.Reader, sum func(io.Reader) (string, error), quiet, warn bool) error {
	good, bad := 0, 0
	err := applet.Lines(r, func(line []byte) error {
		want, file, ok := strings.Cut(string(line), " ")
		if !ok || len(file) < 2 || file[0] != ' ' && file[0] != '*' {
			if bad++; warn {
				c.Warn(fmt.Errorf("%s: this line is not a sum and a name: %s", list, line))
			}
			return nil
		}
		good++
		file = file[1:]
		f, err := c.Open(file)
		got := ""
		if err == nil {
			got, err = sum(f)
			f.Close()
		}
		word := "OK"
		if err != nil {
			c.Warn(err)
			word = "FAILED open or read"
		} else if !strings.EqualFold(got, want) {
			c.Failed()
			word = "FAILED"
		}
		if !quiet {
			c.Printf("%s: %s\n", file, word)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case good == 0:
		return fmt.Errorf("%s: no line in it is a sum and a name", list)
	case bad > 0 && !quiet:
		_ = c.Out.Flush()
		fmt.Fprintf(c.Err, "%s: %s: %d lines are not sums\n", c.Name, list, bad)
	}
	return nil
}

func base64sum(c *applet.Call) error {
	decode := c.Bool("d,decode", "decode")
	wrap := c.Int("w,wrap", "N", 76, "characters in a line; 0: no line ends")
	if err := c.Parse(0, 1); err != nil {
		return err
	}
	return c.Each(c.Args, func(_ string, r io.Reader) error {
		if *decode {
			_, err := io.Copy(c.Out, base64.NewDecoder(base64.StdEncoding, r)) // skips line ends
			return err
		}
		w := &wrapper{w: c.Out, width: *wrap}
		e := base64.NewEncoder(base64.StdEncoding, w)
		_, err := io.Copy(e, r)
		err = errors.Join(err, e.Close())
		if w.at > 0 && *wrap > 0 {
			c.Println()
		}
		return err
	})
}

// wrapper puts line ends after every width bytes.
type wrapper struct {
	w         *bufio.Writer
	width, at int
}

func (w *wrapper) Write(p []byte) (int, error) {
	for _, ch := range p {
		if err := w.w.WriteByte(ch); err != nil {
			return 0, err
		}
		if w.at++; w.at == w.width {
			w.at = 0
			if err := w.w.WriteByte('\n'); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

func gzipper(c *applet.Call) error {
	decompress := c.Name != "gzip"
	stdout := c.Name == "zcat"
	c.Do("d,decompress", "decompress", func() { decompress = true })
	c.Do("c,stdout", "write to standard output and keep the files", func() { stdout = true })
	keep := c.Bool("k,keep", "keep the files")
	force := c.Bool("f,force", "replace files")
	test := c.Bool("t,test", "only check")
	c.Bool("q,quiet", "does nothing: there are no warnings")
	level := gzip.DefaultCompression
	for l := 1; l <= 9; l++ {
		c.Do(fmt.Sprint(l), map[int]string{1: "fastest", 9: "smallest"}[l], func() { level = l })
	}
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	convert := func(w io.Writer, r io.Reader) error {
		if decompress || *test {
			z, err := gzip.NewReader(r)
			if err == nil {
				_, err = io.Copy(w, z) //nolint:gosec // as much as there is
			}
			return err
		}
		z, err := gzip.NewWriterLevel(w, level)
		if err == nil {
			_, err = io.Copy(z, r)
			err = errors.Join(err, z.Close())
		}
		return err
	}
	return c.Each(c.Args, func(name string, r io.Reader) error {
		var w io.Writer = c.Out
		if *test {
			w = io.Discard
		}
		if name == "-" || stdout || *test {
			if err := convert(w, r); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		}
		return replace(name, decompress, *keep, *force, func(w io.Writer) error { return convert(w, r) })
	})
}

// replace writes NAME.gz for NAME, or the other way round, and removes the old file.
func replace(name string, decompress, keep, force bool, convert func(io.Writer) error) error {
	to := name + ".gz"
	if decompress {
		plain, ok := strings.CutSuffix(name, ".gz")
		if tgz, is := strings.CutSuffix(name, ".tgz"); is {
			plain, ok = tgz+".tar", true
		}
		if !ok {
			return fmt.Errorf("%s does not end in .gz: use -c", name)
		}
		to = plain
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	flags := os.O_CREATE | os.O_WRONLY | os.O_EXCL
	if force {
		flags = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	}
	f, err := os.OpenFile(to, flags, info.Mode().Perm())
	if err != nil {
		return err
	}
	if err := errors.Join(convert(f), f.Close()); err != nil {
		_ = os.Remove(to)
		return fmt.Errorf("%s: %w", name, err)
	}
	_ = os.Chtimes(to, info.ModTime(), info.ModTime())
	if keep {
		return nil
	}
	return os.Remove(name)
}
