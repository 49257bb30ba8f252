// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// catFlags say how cat shows a text.
type catFlags struct {
	number, text, squeeze bool // -n, -b, -s
	show, ends, tabs      bool // -v, -E, -T
}

func cat(c *applet.Call) error {
	var f catFlags
	c.Do("n,number", "number lines", func() { f.number = true })
	c.Do("b,number-nonblank", "number lines that are not empty", func() { f.number, f.text = true, true })
	c.Do("s,squeeze-blank", "one empty line in place of many", func() { f.squeeze = true })
	c.Do("v,show-nonprinting", "show control characters as ^X", func() { f.show = true })
	c.Do("E,show-ends", "show line ends as $", func() { f.ends = true })
	c.Do("T,show-tabs", "show tabs as ^I", func() { f.tabs = true })
	c.Do("e", "as -vE", func() { f.show, f.ends = true, true })
	c.Do("t", "as -vT", func() { f.show, f.tabs = true, true })
	c.Do("A,show-all", "as -vET", func() { f.show, f.ends, f.tabs = true, true, true })
	c.Bool("u", "unbuffered (always)")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	n, inside, blank := 0, false, false // inside a line that the last file did not end
	return c.Each(c.Args, func(_ string, r io.Reader) error {
		if f == (catFlags{}) {
			_, err := io.Copy(os.Stdout, struct{ io.Reader }{r})
			return err
		}
		return applet.Parts(r, '\n', func(line []byte, ended bool) error {
			empty := len(line) == 0 && !inside
			if empty && blank && f.squeeze {
				return nil
			}
			if blank = empty; !inside && f.number && (!empty || !f.text) {
				n++
				c.Printf("%6d\t", n)
			}
			line = f.visible(line)
			if ended && f.ends {
				line = append(line, '$')
			}
			c.Line(line, ended)
			inside = !ended
			return nil
		})
	})
}

// visible shows control characters as ^X and bytes that are no text as M-X, as far as it is asked for.
func (f catFlags) visible(line []byte) []byte {
	var b bytes.Buffer
	for _, ch := range line {
		switch {
		case ch == '\t' && f.tabs:
			b.WriteString("^I")
			continue
		case ch == '\t' || !f.show:
			b.WriteByte(ch)
			continue
		case ch >= 128:
			b.WriteString("M-")
			ch -= 128
		}
		switch {
		case ch < 32:
			b.Write([]byte{'^', ch + 64})
		case ch == 127:
			b.WriteString("^?")
		default:
			b.WriteByte(ch)
		}
	}
	return b.Bytes()
}

func number(c *applet.Call) error {
	which := c.String("b,body-numbering", "a|t|n", "t", "number all lines, those with text, or none")
	form := c.String("n,number-format", "ln|rn|rz", "rn", "numbers on the left, on the right, with zeros")
	width := c.Int("w,number-width", "N", 6, "characters of a number")
	sep := c.String("s,number-separator", "TEXT", "\t", "what stands behind a number")
	first := c.Int("v,starting-line-number", "N", 1, "the first number")
	step := c.Int("i,line-increment", "N", 1, "from a number to the next")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	format, ok := map[string]string{"ln": "%-*d", "rn": "%*d", "rz": "%0*d"}[*form]
	if !ok || *width < 1 || *width > 1000 || !slices.Contains([]string{"a", "t", "n"}, *which) {
		return applet.Usage("-b is a, t or n, -n is ln, rn or rz, and -w a width")
	}
	n := *first
	return c.Each(c.Args, func(_ string, r io.Reader) error {
		return applet.Lines(r, func(line []byte) error {
			if *which == "n" || *which == "t" && len(line) == 0 {
				c.Printf("%*s%s\n", *width+len(*sep), "", line)
				return nil
			}
			c.Printf(format+"%s%s\n", *width, n, *sep, line)
			n += *step
			return nil
		})
	})
}

func rev(c *applet.Call) error {
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	return c.Each(c.Args, func(_ string, r io.Reader) error {
		return applet.Parts(r, '\n', func(line []byte, ended bool) error {
			text := []rune(string(line))
			slices.Reverse(text)
			c.Line([]byte(string(text)), ended)
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
		err := applet.Parts(r, '\n', func(line []byte, ended bool) error {
			text := string(line)
			if ended {
				text += "\n"
			}
			all = append(all, text)
			return nil
		})
		for _, l := range slices.Backward(all) {
			c.Printf("%s", l)
		}
		return err
	})
}

func wc(c *applet.Call) error {
	lines, words := c.Bool("l,lines", "lines"), c.Bool("w,words", "words")
	size, chars := c.Bool("c,bytes", "bytes"), c.Bool("m,chars", "characters")
	longest := c.Bool("L,max-line-length", "width of the longest line")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	if !*lines && !*words && !*size && !*chars && !*longest {
		*lines, *words, *size = true, true, true
	}
	var total counts
	print := func(n counts, name string) {
		var out []string
		for i, want := range []bool{*lines, *words, *chars, *size, *longest} {
			if want {
				out = append(out, fmt.Sprintf("%9d", n[i]))
			}
		}
		text := strings.Join(out, " ")
		if len(out) == 1 && len(c.Args) < 2 {
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
		for i := range widest {
			total[i] += n[i]
		}
		total[widest] = max(total[widest], n[widest])
		return err
	})
	if len(c.Args) > 1 {
		print(total, "total")
	}
	return err
}

// counts are lines, words, characters, bytes and, as the last, the width of the longest line.
type counts [widest + 1]int64

const widest = 4

func count(r io.Reader) (n counts, err error) {
	buf := make([]byte, 64<<10)
	inside, width := false, int64(0)
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
			switch {
			case ch == '\n' || ch == '\r' || ch == '\f':
				width = 0
			case ch == '\t':
				width += 8 - width%8
			case ch >= ' ' && ch != 127 && utf8.RuneStart(ch):
				width++
			}
			n[widest] = max(n[widest], width)
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
	c.Do("i,ignore-interrupts", "go on after Ctrl-C", func() { signal.Ignore(unix.SIGINT) })
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
