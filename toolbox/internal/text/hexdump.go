// SPDX-License-Identifier: Apache-2.0

package text

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// dumpForm is how hexdump writes the bytes of a line: in groups, each as wide.
type dumpForm struct {
	bytes, width int
	word         func(p []byte) string // for a group, which may be short at the end
}

func numbers(bytes, width int, format string) dumpForm {
	return dumpForm{bytes, width, func(p []byte) string {
		var full [2]byte
		copy(full[:], p)
		if bytes == 1 {
			return fmt.Sprintf(format, full[0])
		}
		return fmt.Sprintf(format, binary.LittleEndian.Uint16(full[:]))
	}}
}

// character is what hexdump -c shows of a byte.
func character(p []byte) string {
	switch at := strings.IndexByte("\x00\a\b\t\n\v\f\r", p[0]); {
	case at >= 0:
		return " \\" + string(`0abtnvfr`[at])
	case p[0] < 32 || p[0] > 126:
		return fmt.Sprintf("%03o", p[0])
	}
	return "  " + string(rune(p[0]))
}

func hexdump(c *applet.Call) error {
	form := numbers(2, 5, " %04x")
	canonical := false
	c.Do("C,canonical", "bytes and text side by side", func() { canonical = true })
	for _, f := range []struct {
		flag, help string
		form       dumpForm
	}{
		{"b,one-byte-octal", "bytes in octal", numbers(1, 4, " %03o")},
		{"c,one-byte-char", "characters", dumpForm{1, 4, func(p []byte) string { return " " + character(p) }}},
		{"d,two-bytes-decimal", "pairs of bytes in decimal", numbers(2, 8, "   %05d")},
		{"o,two-bytes-octal", "pairs of bytes in octal", numbers(2, 8, "  %06o")},
		{"x,two-bytes-hex", "pairs of bytes in hexadecimal", numbers(2, 8, "    %04x")},
	} {
		c.Do(f.flag, f.help, func() { form = f.form })
	}
	most, from := c.Amount("n,length", "N", -1, "only N bytes"),
		c.Amount("s,skip", "N", 0, "leave the first N bytes out")
	all := c.Bool("v,no-squeezing", "show equal lines too")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	var files []io.Reader // are one stream
	names := c.Args
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		r, err := c.Open(name)
		if err != nil {
			c.Warn(err)
			continue
		}
		defer r.Close()
		files = append(files, r)
	}
	r, err := window(io.MultiReader(files...), *from, *most)
	if err != nil || len(files) == 0 {
		return err
	}
	return dump(c, r, *from, *all, func(at int64, part []byte) {
		if canonical {
			c.Printf("%08x  %-23s  %-23s  |%s|\n", at, hexBytes(part[:min(len(part), 8)], 1),
				hexBytes(part[min(len(part), 8):], 1), printable(part))
			return
		}
		var b strings.Builder
		for i := 0; i < len(part); i += form.bytes {
			b.WriteString(form.word(part[i:min(i+form.bytes, len(part))]))
		}
		c.Printf("%07x%-*s\n", at, 16/form.bytes*form.width, b.String())
	}, map[bool]string{true: "%08x\n", false: "%07x\n"}[canonical])
}

// dump hands on 16 bytes after the other, and * for those that are as before. At the end it prints where that is.
func dump(c *applet.Call, r io.Reader, from int64, all bool, line func(at int64, part []byte), end string) error {
	buf := make([]byte, 16)
	last, starred := "", false
	for at := from; ; {
		n, err := io.ReadFull(r, buf)
		part := buf[:n]
		switch {
		case n == 16 && string(part) == last && !all:
			if !starred {
				c.Println("*")
			}
			starred = true
		case n > 0:
			last, starred = string(part), false
			line(at, part)
		}
		at += int64(n)
		if err != nil {
			if at > from {
				c.Printf(end, at)
			}
			return ended(err)
		}
	}
}

// window skips and limits.
func window(r io.Reader, from, most int64) (io.Reader, error) {
	if _, err := io.CopyN(io.Discard, r, from); err != nil && err != io.EOF {
		return nil, err
	}
	if most >= 0 {
		r = io.LimitReader(r, most)
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
	most, from := c.Amount("l,len", "N", -1, "only N bytes"), c.Amount("s,seek", "N", 0, "leave the first N bytes out")
	upper, include := c.Bool("u,upper", "hex digits in capitals"), c.Bool("i,include", "an array in C")
	cols, group := c.Int("c,cols", "N", 16, "bytes in a line"), c.Int("g,groupsize", "N", 2, "bytes between blanks")
	if err := c.Parse(0, 1); err != nil {
		return err
	}
	if *cols < 1 || *group < 1 {
		return applet.Usage("-c and -g want 1 or more")
	}
	digits := func(text string) string {
		if *upper {
			return strings.ToUpper(text)
		}
		return text
	}
	return c.Each(c.Args, func(name string, r io.Reader) error {
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
		if *include {
			return asC(c, name, r)
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
				c.Println(digits(hex.EncodeToString(buf[:n])))
			case n > 0:
				c.Printf("%08x: %-*s  %s\n", at, width, digits(hexBytes(buf[:n], *group)), printable(buf[:n]))
			}
			at += int64(n)
			if err != nil {
				return ended(err)
			}
		}
	})
}

// asC prints bytes as an array in C; what is no letter or digit in the file's name is _ in the array's.
func asC(c *applet.Call, name string, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	array := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	if name != "-" {
		c.Printf("unsigned char %s[] = {\n", array)
	}
	for i, ch := range data {
		switch {
		case i%12 == 0:
			c.Printf("  0x%02x", ch)
		default:
			c.Printf(" 0x%02x", ch)
		}
		if i+1 < len(data) || name != "-" {
			c.Printf(",")
		}
		if i%12 == 11 || i+1 == len(data) {
			c.Println()
		}
	}
	if name != "-" {
		c.Printf("};\nunsigned int %s_len = %d;\n", array, len(data))
	}
	return nil
}
