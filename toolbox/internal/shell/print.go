// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// printed is what echo or printf prints. These are not the interpreter's: that one knows no %x, %f or precision, and no
// bytes that are not UTF-8.
func printed(errs io.Writer, name string, args []string) (text []byte, code int) {
	var b bytes.Buffer
	switch name {
	case "echo":
		echo(&b, args)
	default:
		p := printer{out: &b, errs: errs}
		code = p.run(args)
	}
	return b.Bytes(), code
}

// printApplet is echo or printf as a program.
func printApplet(c *applet.Call) error {
	if len(c.Args) == 1 && c.Args[0] == "--help" {
		return c.Parse(0, 0)
	}
	text, code := printed(c.Err, c.Name, c.Args)
	if _, err := c.Out.Write(text); err != nil || code == 0 {
		return err
	}
	return applet.Exit(code)
}

// print is echo or printf of the shell. It fails with EPIPE only: anything else it says itself.
func (s *session) print(hc interp.HandlerContext, name string, args []string) (int, error) {
	text, code := printed(hc.Stderr, name, args)
	err := s.put(hc.Stdout, text)
	if err == nil || errors.Is(err, unix.EPIPE) {
		return code, err
	}
	fmt.Fprintf(hc.Stderr, "%s: %v\n", name, err)
	return 1, nil
}

// printing tells which of the shell's commands are this file's. printf -v sets a variable.
func printing(args []string) bool {
	return args[0] == "echo" || args[0] == "printf" && (len(args) < 2 || args[1] != "-v")
}

func echo(b *bytes.Buffer, args []string) {
	end, escapes := "\n", false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		for _, flag := range args[0][1:] {
			switch flag {
			case 'n':
				end = ""
			case 'e', 'E':
				escapes = flag == 'e'
			}
		}
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if escapes {
		if stop := unescape(b, text, true); stop {
			return
		}
	} else {
		b.WriteString(text)
	}
	b.WriteString(end)
}

// unescape writes a text with its escapes read. zero: octal numbers may have a 0 in front, as \0101. stop: it came to
// \c.
func unescape(b *bytes.Buffer, text string, zero bool) (stop bool) {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		switch ch := text[i]; {
		case strings.IndexByte(`abefnrtv\`, ch) >= 0:
			b.WriteByte("\a\b\x1b\f\n\r\t\v\\"[strings.IndexByte(`abefnrtv\`, ch)])
		case ch == '"' && !zero:
			b.WriteByte('"')
		case ch == 'c':
			return true
		case ch == 'x' && i+1 < len(text) && hexDigit(text[i+1]):
			digits := text[i+1 : min(i+3, len(text))]
			if len(digits) == 2 && !hexDigit(digits[1]) {
				digits = digits[:1]
			}
			n, _ := strconv.ParseUint(digits, 16, 8)
			b.WriteByte(byte(n))
			i += len(digits)
		case ch >= '0' && ch <= '7':
			most := 3
			if zero && ch == '0' {
				most = 4
			}
			end := i
			n := 0
			for end < len(text) && end < i+most && text[end] >= '0' && text[end] <= '7' {
				n = n*8 + int(text[end]-'0')
				end++
			}
			b.WriteByte(byte(n))
			i = end - 1
		default:
			b.WriteByte('\\')
			b.WriteByte(ch)
		}
	}
	return false
}

func hexDigit(ch byte) bool {
	return ch >= '0' && ch <= '9' || ch|0x20 >= 'a' && ch|0x20 <= 'f'
}

// printer is one run of printf.
type printer struct {
	out  *bytes.Buffer
	errs io.Writer
	args []string
	used bool // the format has taken an argument
	code int
}

func (p *printer) complain(format string, args ...any) {
	fmt.Fprintf(p.errs, "printf: "+format+"\n", args...)
	p.code = 1
}

func (p *printer) run(args []string) int {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		p.complain("a format is missing (see --help)")
		return 2
	}
	format := args[0]
	for p.args = args[1:]; ; { // the format serves as often as there are arguments
		p.used = false
		if !p.format(format) || !p.used || len(p.args) == 0 {
			return p.code
		}
	}
}

// next is the next argument, if there is one.
func (p *printer) next() (arg string, ok bool) {
	p.used = true
	if len(p.args) == 0 {
		return "", false
	}
	arg, p.args = p.args[0], p.args[1:]
	return arg, true
}

// format prints by the format once; false: it is to end there.
func (p *printer) format(format string) bool {
	for format != "" {
		plain, rest, more := strings.Cut(format, "%")
		if unescape(p.out, plain, false) {
			return false
		}
		if !more {
			return true
		}
		if strings.HasPrefix(rest, "%") {
			p.out.WriteByte('%')
			format = rest[1:]
			continue
		}
		spec, after := p.spec(rest)
		if after == "" {
			p.complain("%%%s: the letter that says how to print is missing", rest)
			return false
		}
		if _, size := utf8.DecodeRuneInString(after); !p.convert(spec, after[:size]) {
			return false
		}
		format = after[1:]
	}
	return true
}

// spec reads flags, width and precision, as they are for package fmt, and leaves out what C wants to know of sizes.
func (p *printer) spec(text string) (spec, rest string) {
	rest = strings.TrimLeft(text, "-+ 0#'")
	spec = "%" + strings.ReplaceAll(text[:len(text)-len(rest)], "'", "")
	number := func() {
		if after, ok := strings.CutPrefix(rest, "*"); ok {
			n := p.integer()
			if rest = after; n > maxWidth || n < -maxWidth {
				n = 0
			}
			spec += strconv.FormatInt(n, 10)
			return
		}
		after := strings.TrimLeft(rest, "0123456789")
		if n, err := strconv.Atoi(rest[:len(rest)-len(after)]); err == nil && n <= maxWidth {
			spec += strconv.Itoa(n)
		}
		rest = after
	}
	number()
	if after, ok := strings.CutPrefix(rest, "."); ok {
		rest = after
		spec += "."
		number()
	}
	return spec, strings.TrimLeft(rest, "hlLjzt")
}

// maxWidth is the widest that is padded to; package fmt has its limit there.
const maxWidth = 1_000_000

func (p *printer) convert(spec, letter string) bool {
	switch letter {
	case "d", "i":
		fmt.Fprintf(p.out, spec+"d", p.integer())
	case "u":
		fmt.Fprintf(p.out, spec+"d", uint64(p.integer()))
	case "o", "x", "X":
		fmt.Fprintf(p.out, spec+letter, uint64(p.integer()))
	case "f", "F", "e", "E", "g", "G":
		if !strings.Contains(spec, ".") {
			spec += ".6"
		}
		fmt.Fprintf(p.out, spec+letter, p.float())
	case "c":
		arg, _ := p.next()
		_, size := utf8.DecodeRuneInString(arg)
		spec, _, _ = strings.Cut(spec, ".")
		fmt.Fprintf(p.out, spec+"s", arg[:size])
	case "s", "b":
		arg, _ := p.next()
		stop := false
		if letter == "b" {
			var b bytes.Buffer
			stop = unescape(&b, arg, true)
			arg = b.String()
		}
		fmt.Fprintf(p.out, strings.ReplaceAll(spec, "0s", "s")+"s", arg)
		return !stop
	default:
		p.complain("%%%s: this way to print is not known: it is one of d i u o x X f e g c s b", letter)
		return false
	}
	return true
}

// integer reads a whole number: decimal, 0x1f, 010, or 'A for a character's. Of what is none, the beginning counts.
func (p *printer) integer() int64 {
	arg, ok := p.next()
	if !ok {
		return 0
	}
	if len(arg) > 1 && (arg[0] == '\'' || arg[0] == '"') {
		r, _ := utf8.DecodeRuneInString(arg[1:])
		return int64(r)
	}
	text := strings.TrimLeft(arg, " \t")
	for end := len(text); end > 0; end-- {
		if strings.ContainsAny(text[:end], "_bBoO") { // Go's own ways to write a number
			continue
		}
		n, err := strconv.ParseInt(text[:end], 0, 64)
		if u, e := strconv.ParseUint(text[:end], 0, 64); err != nil && e == nil {
			n, err = int64(u), nil
		}
		if numError, is := err.(*strconv.NumError); err == nil || is && numError.Err == strconv.ErrRange {
			if err != nil || end < len(text) {
				p.complain("%q is not a whole number", arg)
			}
			return n
		}
	}
	p.complain("%q is not a whole number", arg)
	return 0
}

func (p *printer) float() float64 {
	arg, ok := p.next()
	if !ok {
		return 0
	}
	text := strings.TrimLeft(arg, " \t")
	for end := len(text); end > 0; end-- {
		if n, err := strconv.ParseFloat(text[:end], 64); err == nil {
			if end < len(text) {
				p.complain("%q is not a number", arg)
			}
			return n
		}
	}
	p.complain("%q is not a number", arg)
	return 0
}
