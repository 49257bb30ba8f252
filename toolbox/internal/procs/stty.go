// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// stty shows and sets the terminal on standard input: its size, echo, and whether it hands input on at once.
func stty(c *applet.Call) error {
	all := c.Bool("a,all", "show everything")
	c.Posix()
	if len(c.Args) > 0 && (c.Args[0] == "-echo" || c.Args[0] == "-raw") { // settings, and no flags
		c.Args = append([]string{"--"}, c.Args...)
	}
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	size, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
	if err != nil {
		return applet.Fail(1, "standard input is not a terminal")
	}
	mode, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return err
	}
	if len(c.Args) == 0 || *all {
		c.Println("rows", size.Row, "columns", size.Col, sign(mode, unix.ECHO)+"echo", sign(mode, unix.ICANON)+"icanon",
			sign(mode, unix.ISIG)+"isig")
		return nil
	}
	for i := 0; i < len(c.Args); i++ {
		switch word := c.Args[i]; word {
		case "size":
			c.Println(size.Row, size.Col)
		case "rows", "cols", "columns":
			if i++; i == len(c.Args) {
				return applet.Usage("%s: how many?", word)
			}
			if err := resize(size, word, c.Args[i]); err != nil {
				return err
			}
		default:
			if !change(mode, word) {
				return applet.Usage("there is no setting %q here: size, rows N, cols N, echo, -echo, raw, -raw, sane",
					word)
			}
			if err := unix.IoctlSetTermios(0, unix.TCSETS, mode); err != nil {
				return err
			}
		}
	}
	return nil
}

// resize sets the rows or the columns of the terminal.
func resize(size *unix.Winsize, what, number string) error {
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return applet.Usage("%s: %q is not a number", what, number)
	}
	if what == "rows" {
		size.Row = uint16(n)
	} else {
		size.Col = uint16(n)
	}
	return unix.IoctlSetWinsize(0, unix.TIOCSWINSZ, size)
}

// change makes of a mode what a setting means; false if there is no such setting.
func change(mode *unix.Termios, setting string) bool {
	switch setting {
	case "echo":
		mode.Lflag |= unix.ECHO
	case "-echo":
		mode.Lflag &^= unix.ECHO
	case "sane", "-raw", "cooked":
		mode.Iflag |= unix.BRKINT | unix.ICRNL | unix.IXON
		mode.Oflag |= unix.OPOST | unix.ONLCR
		mode.Lflag |= unix.ECHO | unix.ICANON | unix.ISIG | unix.IEXTEN
	case "raw":
		mode.Iflag &^= unix.BRKINT | unix.ICRNL | unix.IXON
		mode.Oflag &^= unix.OPOST
		mode.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG | unix.IEXTEN
	default:
		return false
	}
	return true
}

// sign is the minus of a mode that is off.
func sign(mode *unix.Termios, bit uint32) string {
	if mode.Lflag&bit == 0 {
		return "-"
	}
	return ""
}
