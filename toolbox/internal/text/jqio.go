// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/itchyny/gojq"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// jqInput gives the input's values one after another, to the program and to the query's input and inputs alike.
type jqInput struct {
	c     *applet.Call
	f     *jqFlags
	names []string // of the files still to come

	now   string
	file  io.ReadCloser
	json  *json.Decoder
	lines *bufio.Reader
	done  bool
}

// Next is gojq's iterator: a value, an error, or nothing more. With --null-input the program takes none.
func (in *jqInput) Next() (any, bool) {
	if !in.f.slurp {
		return in.next()
	}
	if in.done {
		return nil, false
	}
	in.done = true
	all, text := []any{}, ""
	for {
		v, ok := in.next()
		if err, bad := v.(error); bad {
			return err, true
		}
		if !ok {
			break
		}
		if in.f.lines {
			text += v.(string) + "\n"
			continue
		}
		all = append(all, v)
	}
	if in.f.lines {
		return text, true
	}
	return all, true
}

func (in *jqInput) next() (any, bool) {
	for {
		if in.file == nil {
			if len(in.names) == 0 {
				return nil, false
			}
			in.now, in.names = in.names[0], in.names[1:]
			file, err := in.c.Open(in.now)
			if err != nil {
				return err, true
			}
			in.file, in.json, in.lines = file, json.NewDecoder(file), bufio.NewReader(file)
			in.json.UseNumber()
		}
		v, err := in.read()
		if err == nil {
			return v, true
		}
		in.close()
		if err != io.EOF {
			in.names = nil
			return fmt.Errorf("%s: this is not JSON: %w", strings.Replace(in.now, "-", "standard input", 1), err), true
		}
	}
}

func (in *jqInput) read() (v any, err error) {
	if !in.f.lines {
		err = in.json.Decode(&v)
		return v, err
	}
	line, err := in.lines.ReadString('\n')
	if line == "" {
		return nil, err
	}
	return strings.TrimSuffix(line, "\n"), nil
}

func (in *jqInput) close() {
	if in.file != nil {
		in.file.Close()
		in.file = nil
	}
}

// name is what input_filename tells.
func (in *jqInput) name() any {
	if in.now == "" || in.now == "-" {
		return nil
	}
	return in.now
}

// print writes a value.
func (f *jqFlags) print(c *applet.Call, v any) error {
	text, plain := v.(string)
	if f.raw || f.joined {
		if plain {
			c.Printf("%s", text)
		}
	} else {
		plain = false
	}
	if !plain {
		b, err := gojq.Marshal(v)
		if err != nil {
			return err
		}
		if !f.compact && f.indent != "" {
			var wide bytes.Buffer
			if err := json.Indent(&wide, b, "", f.indent); err != nil {
				return err
			}
			b = wide.Bytes()
		}
		if f.ascii {
			b = escaped(b)
		}
		_, _ = c.Out.Write(b)
	}
	if !f.joined {
		c.Println()
	}
	if c.Out.Buffered() > 0 { // a query on a stream answers at once
		return c.Out.Flush()
	}
	return nil
}

// escaped writes what is not ASCII as JSON's escapes.
func escaped(b []byte) []byte {
	var out []byte
	for _, r := range string(b) {
		switch {
		case r < 0x80:
			out = append(out, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
