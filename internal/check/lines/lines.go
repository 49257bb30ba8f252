// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bytes"
	"fmt"
	"go/format"
	"slices"
)

// mostRounds bounds how often a line may be broken.
const mostRounds = 40

// Broken is a Go file with its long lines broken.
func Broken(old []byte) ([]byte, error) {
	if !slices.ContainsFunc(bytes.Split(old, []byte("\n")), func(line []byte) bool { return width(line) > most }) {
		return old, nil
	}
	text := old
	for range mostRounds {
		next, err := round(text)
		if err != nil {
			return nil, err
		}
		if next, err = format.Source(next); err != nil {
			return nil, fmt.Errorf("breaking its lines made it no Go: %w", err)
		}
		if bytes.Equal(next, text) {
			break
		}
		text = next
	}
	return text, same(old, text)
}

// round breaks each long line once.
func round(text []byte) ([]byte, error) {
	lines := bytes.Split(filled(text), []byte("\n"))
	tokens, err := scan(bytes.Join(lines, []byte("\n")))
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for i := 0; i < len(lines); i++ {
		line, pieces := lines[i], tokens[i+1]
		if width(line) <= most || len(pieces) == 0 {
			out = append(out, line)
			continue
		}
		first, rest, flows := breakLine(line, pieces)
		if out = append(out, first); rest == nil {
			continue
		}
		if flows && i+1 < len(lines) && len(tokens[i+2]) > 0 &&
			follows(lines[i], lines[i+1], tokens[i+1], tokens[i+2]) {
			i++
			rest = slices.Concat(rest, []byte(" "), bytes.TrimLeft(lines[i], "\t"))
		}
		out = append(out, rest)
	}
	return bytes.Join(out, []byte("\n")), nil
}
