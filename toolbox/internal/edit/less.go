// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
	"github.com/wherryproject/wherry/toolbox/internal/terminal"
)

const lessHelp = `Keys:  space f PgDn    a page on          b PgUp  a page back
       d  u            half a page        j k enter and arrows  a line
       g <             the beginning      G >   the end
       /TEXT  ?TEXT    search on, back    n N   again, the other way
       q               quit
`

// pager is one run of less.
type pager struct {
	*screen
	name    string
	lines   []string
	top     int // the first line shown
	number  bool
	search  *regexp.Regexp
	back    bool // the search went backwards
	message string
}

func less(c *applet.Call) error {
	number := c.Bool("N", "line numbers")
	fold := c.Bool("i", "search without upper and lower case")
	short := c.Bool("F", "only print what fits on the screen")
	for _, o := range []string{"R", "S", "X", "e", "r"} {
		c.Bool(o, "does nothing")
	}
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	if len(c.Args) == 0 && terminal.Is(c.In) {
		return applet.Usage("missing file")
	}
	if !terminal.Is(os.Stdout) {
		return c.Each(c.Args, func(_ string, r io.Reader) error { return pass(c.Out, r) })
	}
	p := &pager{number: *number, name: strings.Join(c.Args, " ")}
	if err := c.Each(c.Args, func(_ string, r io.Reader) error {
		return applet.Lines(r, func(l []byte) error { p.lines = append(p.lines, string(l)); return nil })
	}); err != nil {
		return err
	}
	if rows, _ := terminal.Size(os.Stdout); *short && len(p.lines) < rows {
		for _, l := range p.lines {
			c.Println(l)
		}
		return nil
	}
	var err error
	if p.screen, err = openScreen(); err != nil {
		return err
	}
	defer p.close()
	return p.run(*fold)
}

// pass copies a file. Of one that cannot be read it says so, and not that what it is copied to cannot be written.
func pass(to io.Writer, from io.Reader) error {
	data := make([]byte, 32<<10)
	for {
		n, err := from.Read(data)
		if _, e := to.Write(data[:n]); e != nil {
			return e
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (p *pager) run(fold bool) error {
	for {
		p.draw()
		k, err := p.next()
		if err != nil {
			return nil //nolint:nilerr // the terminal is gone
		}
		p.message = ""
		page := max(1, p.rows-1)
		switch k {
		case 'q', 'Q', terminal.Ctrl('c'):
			return nil
		case ' ', 'f', terminal.PageDown, terminal.Ctrl('f'), terminal.Ctrl('v'):
			p.top += page
		case 'b', terminal.PageUp, terminal.Ctrl('b'):
			p.top -= page
		case 'd', terminal.Ctrl('d'):
			p.top += page / 2
		case 'u', terminal.Ctrl('u'):
			p.top -= page / 2
		case 'j', '\r', '\n', terminal.Down, terminal.Ctrl('n'):
			p.top++
		case 'k', terminal.Up, terminal.Ctrl('p'):
			p.top--
		case 'g', '<', terminal.Home:
			p.top = 0
		case 'G', '>', terminal.End:
			p.top = len(p.lines)
		case 'h':
			p.message = strings.ReplaceAll(lessHelp, "\n", "\r\n")
		case '/', '?':
			if text, ok := p.ask(string(k)); ok && text != "" {
				if fold {
					text = "(?i)" + text
				}
				if p.search, err = regexp.Compile(text); err != nil {
					p.message = err.Error()
				}
			}
			p.back = k == '?'
			p.find(p.back)
		case 'n':
			p.find(p.back)
		case 'N':
			p.find(!p.back)
		}
		p.top = max(0, min(p.top, len(p.lines)-page))
	}
}

// ask reads a line at the bottom.
func (p *screen) ask(prompt string) (string, bool) {
	text := []rune{}
	for {
		fmt.Fprintf(p.out, "\x1b[%d;1H\x1b[K%s%s", p.rows, prompt, string(text))
		k, err := p.next()
		switch {
		case err != nil || k == terminal.Escape || k == terminal.Ctrl('c') || k == terminal.Ctrl('g'):
			return "", false
		case k == '\r' || k == '\n':
			return string(text), true
		case k == 0x7f || k == 8:
			if len(text) == 0 {
				return "", false
			}
			text = text[:len(text)-1]
		case k == terminal.Ctrl('u'):
			text = text[:0]
		case k >= ' ' && k < terminal.Up || k == '\t':
			text = append(text, k)
		}
	}
}

func (p *pager) find(back bool) {
	if p.search == nil {
		return
	}
	if back {
		for i := p.top - 1; i >= 0; i-- {
			if p.search.MatchString(p.lines[i]) {
				p.top = i
				return
			}
		}
	} else {
		if i := slices.IndexFunc(p.lines[min(p.top+1, len(p.lines)):], p.search.MatchString); i >= 0 {
			p.top += 1 + i
			return
		}
	}
	p.message = "not found"
}

func (p *pager) draw() {
	var b strings.Builder
	b.WriteString("\x1b[H\x1b[J")
	used, i := 0, p.top
	for ; i < len(p.lines) && used < p.rows-1; i++ {
		line := cells(p.lines[i], 0)
		if p.number {
			line = fmt.Sprintf("%6d %s", i+1, line)
		}
		for _, row := range wrap(line, p.columns) {
			if used++; used > p.rows-1 {
				break
			}
			if p.search != nil {
				row = p.search.ReplaceAllStringFunc(row, func(m string) string { return "\x1b[7m" + m + "\x1b[m" })
			}
			b.WriteString(row + "\x1b[K\r\n")
		}
	}
	for ; used < p.rows-1; used++ {
		b.WriteString("~\r\n")
	}
	status := p.message
	if status == "" {
		status = fmt.Sprintf("\x1b[7m%s %d/%d\x1b[m", p.name, min(i, len(p.lines)), len(p.lines))
		if i >= len(p.lines) {
			status = "\x1b[7m" + strings.TrimSpace(p.name+" (END)") + "\x1b[m"
		}
	}
	fmt.Fprintf(p.out, "%s\x1b[%d;1H%s", b.String(), p.rows-strings.Count(status, "\n"), status)
}
