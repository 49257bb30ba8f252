// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

func cat(c *applet.Call) error {
	number := c.Bool("n,number", "number lines")
	show := c.Bool("v,show-nonprinting", "show control characters as ^X")
	all := c.Bool("A,show-all", "as -v, with $ at line ends and ^I for tabs")
	c.Bool("u", "unbuffered (always)")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	n := 0
	return c.Each(c.Args, func(_ string, r io.Reader) error {
		if !*number && !*show && !*all {
			_, err := io.Copy(os.Stdout, struct{ io.Reader }{r})
			return err
		}
		return applet.Lines(r, func(line []byte) error {
			if n++; *number {
				c.Printf("%6d\t", n)
			}
			if *show || *all {
				line = visible(line, *all)
			}
			_, err := fmt.Fprintf(c.Out, "%s\n", line)
			return err
		})
	})
}

// visible shows control characters as ^X and bytes that are no text as M-X.
func visible(line []byte, all bool) []byte {
	var b bytes.Buffer
	for _, ch := range line {
		if ch >= 128 {
			b.WriteString("M-")
			ch -= 128
		}
		switch {
		case ch == '\t' && !all:
			b.WriteByte(ch)
		case ch < 32:
			b.Write([]byte{'^', ch + 64})
		case ch == 127:
			b.WriteString("^?")
		default:
			b.WriteByte(ch)
		}
	}
	if all {
		b.WriteByte('$')
	}
	return b.Bytes()
}

func number(c *applet.Call) error {
	all := c.String("b,body-numbering", "a|t", "t", "number all lines, or those with text")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	n := 0
	return c.Each(c.Args, func(_ string, r io.Reader) error {
		return applet.Lines(r, func(line []byte) error {
			if len(line) == 0 && *all != "a" {
				c.Println("       ")
				return nil
			}
			n++
			c.Printf("%6d\t%s\n", n, line)
			return nil
		})
	})
}

func rev(c *applet.Call) error {
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	return c.Each(c.Args, func(_ string, r io.Reader) error {
		return applet.Lines(r, func(line []byte) error {
			text := []rune(string(line))
			slices.Reverse(text)
			c.Println(string(text))
			return nil
		})
	})
}

func tac(c *applet.Call) error {
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	return c.Each(c.Args, func(_ string, r io.Reader) error {
		var all []string
		err := applet.Lines(r, func(line []byte) error { all = append(all, string(line)); return nil })
		for _, l := range slices.Backward(all) {
			c.Println(l)
		}
		return err
	})
}

func wc(c *applet.Call) error {
	lines, words := c.Bool("l,lines", "lines"), c.Bool("w,words", "words")
	size, chars := c.Bool("c,bytes", "bytes"), c.Bool("m,chars", "characters")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	if !*lines && !*words && !*size && !*chars {
		*lines, *words, *size = true, true, true
	}
	var total [4]int64
	print := func(n [4]int64, name string) {
		var out []string
		for i, want := range []bool{*lines, *words, *chars, *size} {
			if want {
				out = append(out, fmt.Sprintf("%7d", n[i]))
			}
		}
		text := strings.Join(out, " ")
		if len(out) == 1 {
			text = strings.TrimLeft(text, " ")
		}
		if name != "-" || len(c.Args) > 0 {
			text += " " + name
		}
		c.Println(text)
	}
	err := c.Each(c.Args, func(name string, r io.Reader) error {
		n, err := count(r)
		print(n, name)
		for i := range n {
			total[i] += n[i]
		}
		return err
	})
	if len(c.Args) > 1 {
		print(total, "total")
	}
	return err
}

// count returns lines, words, characters and bytes.
func count(r io.Reader) (n [4]int64, err error) {
	buf := make([]byte, 64<<10)
	inside := false
	for {
		got, err := r.Read(buf)
		n[3] += int64(got)
		for _, ch := range buf[:got] {
			space := ch == ' ' || ch >= '\t' && ch <= '\r'
			if ch == '\n' {
				n[0]++
			}
			if !space && !inside {
				n[1]++
			}
			inside = !space
			if utf8.RuneStart(ch) {
				n[2]++
			}
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func tee(c *applet.Call) error {
	add := c.Bool("a,append", "add to the files")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	flags := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if *add {
		flags = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	out := []io.Writer{os.Stdout}
	for _, name := range c.Args {
		f, err := os.OpenFile(name, flags, 0o666)
		if err != nil {
			c.Warn(err)
			continue
		}
		defer f.Close()
		out = append(out, f)
	}
	_, err := io.Copy(io.MultiWriter(out...), struct{ io.Reader }{c.In})
	return err
}

func seq(c *applet.Call) error {
	sep := c.String("s,separator", "TEXT", "\n", "what stands between numbers")
	wide := c.Bool("w,equal-width", "pad with zeros")
	negative := func(a string) bool { return len(a) > 1 && a[0] == '-' && (a[1] == '.' || a[1] >= '0' && a[1] <= '9') }
	if at := slices.IndexFunc(c.Args, negative); at >= 0 {
		c.Args = slices.Insert(c.Args, at, "--")
	}
	if err := c.Parse(1, 3); err != nil {
		return err
	}
	numbers := []float64{1, 1, 0}
	places := 0
	for i, a := range c.Args {
		v, err := strconv.ParseFloat(a, 64)
		if err != nil {
			return applet.Usage("%q is not a number", a)
		}
		if _, after, ok := strings.Cut(a, "."); ok {
			places = max(places, len(after))
		}
		at := []int{i}
		switch {
		case i == len(c.Args)-1:
			at[0] = 2
		}
		numbers[at[0]] = v
	}
	first, step, last := numbers[0], numbers[1], numbers[2]
	if step == 0 {
		return applet.Usage("the step is 0")
	}
	word := func(v float64) string { return strconv.FormatFloat(v, 'f', places, 64) }
	width := 0
	if *wide {
		width = max(len(word(first)), len(word(last)))
	}
	for i := 0; ; i++ {
		v := first + float64(i)*step
		if step > 0 && v > last+1e-9 || step < 0 && v < last-1e-9 {
			if i > 0 {
				c.Println()
			}
			return nil
		}
		if i > 0 {
			c.Printf("%s", *sep)
		}
		if _, err := fmt.Fprintf(c.Out, "%0*s", width, word(v)); err != nil {
			return err
		}
	}
}

func stringsIn(c *applet.Call) error {
	least := c.Int("n,bytes", "N", 4, "shortest text to print")
	offset := c.Bool("o", "print where it stands")
	c.Bool("a,all", "the whole file (always)")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	return c.Each(c.Args, func(_ string, r io.Reader) error {
		buf := make([]byte, 64<<10)
		var text []byte
		at := int64(0)
		flush := func() {
			if len(text) >= *least {
				if *offset {
					c.Printf("%7d ", at-int64(len(text)))
				}
				c.Printf("%s\n", text)
			}
			text = text[:0]
		}
		for {
			n, err := r.Read(buf)
			for _, ch := range buf[:n] {
				if ch >= 32 && ch < 127 || ch == '\t' {
					text = append(text, ch)
				} else {
					flush()
				}
				at++
			}
			if err != nil {
				flush()
				if err == io.EOF {
					err = nil
				}
				return err
			}
		}
	})
}

func cmpFiles(c *applet.Call) error {
	quiet := c.Bool("s,silent", "say nothing")
	if err := c.Parse(2, 2); err != nil {
		return err
	}
	a, err := c.Open(c.Args[0])
	if err != nil {
		return applet.Fail(2, "%w", err)
	}
	b, err := c.Open(c.Args[1])
	if err != nil {
		return applet.Fail(2, "%w", err)
	}
	x, y := make([]byte, 64<<10), make([]byte, 64<<10)
	at, line := 0, 1
	for {
		n, err1 := io.ReadFull(a, x)
		m, err2 := io.ReadFull(b, y)
		for i := range min(n, m) {
			if x[i] != y[i] {
				if !*quiet {
					c.Printf("%s %s differ: byte %d, line %d\n", c.Args[0], c.Args[1], at+i+1, line)
				}
				return applet.Exit(1)
			}
			if x[i] == '\n' {
				line++
			}
		}
		at += min(n, m)
		if n != m {
			if short := c.Args[map[bool]int{true: 0, false: 1}[n < m]]; !*quiet {
				fmt.Fprintf(c.Err, "cmp: EOF on %s after byte %d\n", short, at)
			}
			return applet.Exit(1)
		}
		if err1 != nil || err2 != nil {
			for _, e := range []error{err1, err2} {
				if e != nil && e != io.EOF && !errors.Is(e, io.ErrUnexpectedEOF) {
					return applet.Fail(2, "%w", e)
				}
			}
			return nil
		}
	}
}
