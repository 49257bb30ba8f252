// SPDX-License-Identifier: Apache-2.0

package text

import (
	"io"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

func stringsIn(c *applet.Call) error {
	least := c.Int("n,bytes", "N", 4, "shortest text to print")
	radix := c.String("t,radix", "o|d|x", "", "print where it stands: octal, decimal or hexadecimal")
	c.Do("o", "as -t o", func() { *radix = "o" })
	names := c.Bool("f,print-file-name", "print the file's name")
	c.Bool("a,all", "the whole file (always)")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	place, ok := map[string]string{"": "", "o": "%7o ", "d": "%7d ", "x": "%7x "}[*radix]
	if !ok || *least < 1 {
		return applet.Usage("-t is o, d or x, and -n 1 or more")
	}
	return c.Each(c.Args, func(name string, r io.Reader) error {
		if name == "-" {
			name = "{standard input}"
		}
		buf := make([]byte, 64<<10)
		var text []byte
		at := int64(0)
		flush := func() {
			if len(text) >= *least {
				if *names {
					c.Printf("%s: ", name)
				}
				if place != "" {
					c.Printf(place, at-int64(len(text)))
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
