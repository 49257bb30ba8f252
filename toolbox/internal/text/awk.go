// SPDX-License-Identifier: Apache-2.0

package text

import (
	"errors"
	"os"
	"os/exec"
	"strings"

	"github.com/benhoyt/goawk/interp"
	"github.com/benhoyt/goawk/lexer"
	"github.com/benhoyt/goawk/parser"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// awk is POSIX awk: GoAWK does the work.
func awk(c *applet.Call) error {
	c.Posix()
	separator := c.String("F,field-separator", "SEP", " ",
		"what is between fields: a character or a regular expression")
	vars := c.Strings("v,assign", "NAME=VALUE", "variable set before the program begins; may be repeated")
	files := c.Strings("f,file", "FILE", "read the program from a file; may be repeated")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	source, err := awkSource(c, *files)
	if err != nil {
		return err
	}
	config := &interp.Config{Stdin: c.In, Output: c.Out, Error: c.Err, Argv0: "awk", Args: c.Args,
		Vars: []string{"FS", *separator}, ShellCommand: shellCommand()}
	if *separator == "t" { // as POSIX has it
		config.Vars[1] = "\t"
	}
	for _, v := range *vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return applet.Usage("-v %s is not of the form NAME=VALUE", v)
		}
		config.Vars = append(config.Vars, name, unescaped(value))
	}
	program, err := parser.ParseProgram(source, nil)
	if err != nil {
		return applet.Fail(2, "%w", err)
	}
	code, err := interp.ExecProgram(program, config)
	switch {
	case errors.Is(err, os.ErrClosed):
		return nil
	case err != nil:
		return applet.Fail(2, "%w", err)
	case code != 0:
		return applet.Exit(code)
	}
	return nil
}

// unescaped reads the escapes in a value, as those in a string of a program (POSIX).
func unescaped(value string) string {
	if !strings.Contains(value, `\`) {
		return value
	}
	if text, err := lexer.Unescape(value); err == nil {
		return text
	}
	return value // it ends in a backslash, or has a line break in it
}

// awkSource is the program: the files' or the first argument.
func awkSource(c *applet.Call, files []string) ([]byte, error) {
	var source []byte
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, applet.Fail(2, "%w", err)
		}
		source = append(append(source, text...), '\n')
	}
	if len(files) > 0 {
		return source, nil
	}
	if len(c.Args) == 0 {
		return nil, applet.Usage("which program? awk '{ print $1 }' FILE")
	}
	source, c.Args = []byte(c.Args[0]), c.Args[1:]
	return source, nil
}

// shellCommand runs what awk's system and pipes ask for: in another file system than its own image's, the toolbox's
// shell.
func shellCommand() []string {
	if sh, err := exec.LookPath("sh"); err == nil {
		return []string{sh, "-c"}
	}
	return []string{"/proc/self/exe", "sh", "-c"}
}
