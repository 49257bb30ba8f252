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
	quiet := c.Bool("s,status", "with -c: exit code only")
	c.Bool("b,binary", "does nothing")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	make := map[string]func() hash.Hash{"md5sum": md5.New, "sha1sum": sha1.New, "sha256sum": sha256.New, "sha512sum": sha512.New}[c.Name]
	sum := func(r io.Reader) (string, error) {
		h := make()
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
		return applet.Lines(r, func(line []byte) error {
			want, file, ok := strings.Cut(string(line), " ")
			if !ok || len(file) < 2 {
				return fmt.Errorf("%s: this is no line of sums: %s", name, line)
			}
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
			if !*quiet {
				c.Printf("%s: %s\n", file, word)
			}
			return nil
		})
	})
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

func hexdump(c *applet.Call) error {
	canonical := c.Bool("C,canonical", "bytes and text side by side")
	most := c.Int("n,length", "N", -1, "only N bytes")
	from := c.Int("s,skip", "N", 0, "leave the first N bytes out")
	all := c.Bool("v,no-squeezing", "show equal lines too")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	return c.Each(c.Args, func(_ string, r io.Reader) error {
		r, err := window(r, *from, *most)
		if err != nil {
			return err
		}
		buf := make([]byte, 16)
		last, starred := "", false
		for at := *from; ; {
			n, err := io.ReadFull(r, buf)
			part := buf[:n]
			switch {
			case n == 16 && string(part) == last && !*all:
				if !starred {
					c.Println("*")
				}
				starred = true
			case n > 0:
				last, starred = string(part), false
				if *canonical {
					c.Printf("%08x  %-23s  %-23s  |%s|\n", at, hexBytes(part[:min(n, 8)], 1), hexBytes(part[min(n, 8):], 1), printable(part))
				} else {
					c.Printf("%07x", at)
					for i := 0; i < n; i += 2 {
						word := uint16(part[i])
						if i+1 < n {
							word |= uint16(part[i+1]) << 8
						}
						c.Printf(" %04x", word)
					}
					c.Println()
				}
			}
			at += n
			if err != nil {
				if *canonical && at > *from {
					c.Printf("%08x\n", at)
				} else if at > *from {
					c.Printf("%07x\n", at)
				}
				return ended(err)
			}
		}
	})
}

// window skips and limits.
func window(r io.Reader, from, most int) (io.Reader, error) {
	if _, err := io.CopyN(io.Discard, r, int64(from)); err != nil && err != io.EOF {
		return nil, err
	}
	if most >= 0 {
		r = io.LimitReader(r, int64(most))
	}
	return r, nil
}

func ended(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// hexBytes prints groups of bytes with blanks between.
func hexBytes(p []byte, group int) string {
	var b strings.Builder
	for i, ch := range p {
		if i > 0 && i%group == 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%02x", ch)
	}
	return b.String()
}

func printable(p []byte) string {
	out := make([]byte, len(p))
	for i, ch := range p {
		if out[i] = '.'; ch >= 32 && ch < 127 {
			out[i] = ch
		}
	}
	return string(out)
}

func xxd(c *applet.Call) error {
	back := c.Bool("r,revert", "make bytes of a dump")
	plain := c.Bool("p,plain", "hex digits only")
	most, from := c.Int("l,len", "N", -1, "only N bytes"), c.Int("s,seek", "N", 0, "leave the first N bytes out")
	cols, group := c.Int("c,cols", "N", 16, "bytes in a line"), c.Int("g,groupsize", "N", 2, "bytes between blanks")
	if err := c.Parse(0, 1); err != nil {
		return err
	}
	if *cols < 1 || *group < 1 {
		return applet.Usage("-c and -g want 1 or more")
	}
	return c.Each(c.Args, func(_ string, r io.Reader) error {
		if *back {
			return applet.Lines(r, func(line []byte) error {
				text := string(line)
				if _, after, ok := strings.Cut(text, ": "); ok {
					text, _, _ = strings.Cut(after, "  ")
				}
				data, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(text), " ", ""))
				_, _ = c.Out.Write(data)
				return err
			})
		}
		r, err := window(r, *from, *most)
		if err != nil {
			return err
		}
		if *plain && *cols == 16 {
			*cols = 30
		}
		buf := make([]byte, *cols)
		width := *cols*2 + (*cols+*group-1) / *group - 1
		for at := *from; ; {
			n, err := io.ReadFull(r, buf)
			switch {
			case n > 0 && *plain:
				c.Println(hex.EncodeToString(buf[:n]))
			case n > 0:
				c.Printf("%08x: %-*s  %s\n", at, width, hexBytes(buf[:n], *group), printable(buf[:n]))
			}
			at += n
			if err != nil {
				return ended(err)
			}
		}
	})
}
