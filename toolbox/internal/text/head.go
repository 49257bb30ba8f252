// SPDX-License-Identifier: Apache-2.0

package text

import (
	"io"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

func head(c *applet.Call) error {
	lines := c.Amount("n,lines", "N", 10, "lines; -N: all but the last N; k, m: times 1024, 1024²")
	bytes := c.String("c,bytes", "N", "", "bytes, not lines; as -n")
	quiet, always := c.Bool("q,quiet", "no file names"), c.Bool("v,verbose", "file names always")
	c.Digits("n")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	size := int64(0)
	if *bytes != "" {
		var err error
		if size, err = applet.ParseAmount(*bytes); err != nil {
			return applet.Usage("-c: %v", err)
		}
	}
	first := true
	return c.Each(c.Args, func(name string, r io.Reader) error {
		title(c, name, *always || len(c.Args) > 1 && !*quiet, &first)
		if *bytes != "" {
			return firstBytes(c, r, size)
		}
		return firstLines(c, r, *lines)
	})
}

func title(c *applet.Call, name string, want bool, first *bool) {
	if want {
		if !*first {
			c.Println()
		}
		if name == "-" {
			name = "standard input"
		}
		c.Printf("==> %s <==\n", name)
	}
	*first = false
}

// firstBytes prints n bytes or, if n is negative, all but the last -n.
func firstBytes(c *applet.Call, r io.Reader, n int64) error {
	if n >= 0 {
		_, err := io.CopyN(c.Out, r, n)
		if err == io.EOF {
			err = nil
		}
		return err
	}
	var kept []byte
	buf := make([]byte, 64<<10)
	for {
		got, err := r.Read(buf)
		kept = append(kept, buf[:got]...)
		if more := int64(len(kept)) + n; more > 0 {
			if _, err := c.Out.Write(kept[:more]); err != nil {
				return err
			}
			kept = append(kept[:0], kept[more:]...)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// firstLines prints n lines or, if n is negative, all but the last -n.
func firstLines(c *applet.Call, r io.Reader, n int64) error {
	if n == 0 {
		return nil
	}
	var kept []string
	seen := int64(0)
	err := applet.Parts(r, '\n', func(line []byte, ended bool) error {
		if n < 0 {
			if kept = append(kept, string(line)); int64(len(kept)) > -n {
				c.Println(kept[0])
				kept = kept[1:]
			}
			return nil
		}
		c.Line(line, ended)
		if seen++; seen == n {
			return io.EOF
		}
		return nil
	})
	if err == io.EOF {
		err = nil
	}
	return err
}
