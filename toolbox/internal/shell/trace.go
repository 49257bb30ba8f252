// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"bytes"
	"os"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// traceless is an output without the lines by which set -x would show what is put in here.
type traceless struct{ *os.File }

func (t traceless) Write(p []byte) (int, error) {
	line, traced := bytes.CutPrefix(p, []byte("+ "))
	if !traced {
		return t.File.Write(p)
	}
	if bytes.HasPrefix(line, []byte(inner)) {
		return len(p), nil
	}
	for _, ours := range ownVariables() {
		if bytes.HasPrefix(line, []byte(ours+"=")) {
			return len(p), nil
		}
	}
	if _, err := t.File.WriteString("+ " + plainCall(string(line))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// plainCall is a call as other shells show it: the interpreter quotes all arguments of a command of its own as one.
func plainCall(line string) string {
	name, args, ok := strings.Cut(line, " ")
	if !ok || !interp.IsBuiltin(name) || !strings.ContainsAny(args, `'"`) {
		return line
	}
	var words []*syntax.Word
	for word, err := range syntax.NewParser().WordsSeq(strings.NewReader(args)) {
		if err != nil {
			return line
		}
		words = append(words, word)
	}
	if len(words) != 1 {
		return line
	}
	text, err := expand.Literal(nil, words[0])
	if err != nil {
		return line
	}
	return name + " " + text + "\n"
}
