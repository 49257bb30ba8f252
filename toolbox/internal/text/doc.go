// SPDX-License-Identifier: Apache-2.0

// Package text has the commands about text and bytes: cat, grep, sed, sort, awk, jq and their kind.
//
// Its law: input is a stream of any length, lines may have any length and any bytes. Regular expressions are Go's (RE2)
// written as POSIX writes them, so they take linear time and know no back-references. [Applets] lists the commands.
package text

import "github.com/wherryproject/wherry/toolbox/internal/applet"

// Applets returns the package's commands.
func Applets() []applet.Applet {
	return []applet.Applet{
		{Name: "awk", Usage: "PROGRAM [FILE]...", Short: "Run a program for each line", Run: awk},
		{Name: "base64", Usage: "[FILE]", Short: "Encode or decode base64", Run: base64sum},
		{Name: "cat", Usage: "[FILE]...", Short: "Print files", Run: cat},
		{Name: "cmp", Usage: "FILE FILE", Short: "Compare two files byte by byte", Run: cmpFiles},
		{Name: "cut", Usage: "[FILE]...", Short: "Print parts of lines", Run: cut},
		{Name: "diff", Usage: "FILE FILE", Short: "Print what two files do not have in common", Run: diff},
		{Name: "egrep", Usage: "PATTERN [FILE]...", Short: "As grep -E", Run: grep},
		{Name: "fgrep", Usage: "PATTERN [FILE]...", Short: "As grep -F", Run: grep},
		{Name: "grep", Usage: "PATTERN [FILE]...", Short: "Print lines that match", Run: grep},
		{Name: "gunzip", Usage: "[FILE]...", Short: "Decompress .gz files", Run: gzipper},
		{Name: "gzip", Usage: "[FILE]...", Short: "Compress files", Run: gzipper},
		{Name: "head", Usage: "[FILE]...", Short: "Print the first lines", Run: head},
		{Name: "hexdump", Usage: "[FILE]...", Short: "Print bytes as numbers and text", Run: hexdump},
		{Name: "jq", Usage: "[QUERY [FILE]...]", Short: "Query JSON", Run: jq},
		{Name: "md5sum", Usage: "[FILE]...", Short: "Print or check MD5 sums", Run: sums},
		{Name: "nl", Usage: "[FILE]...", Short: "Number lines", Run: number},
		{Name: "rev", Usage: "[FILE]...", Short: "Print lines backwards", Run: rev},
		{Name: "sed", Usage: "SCRIPT [FILE]...", Short: "Edit a stream of lines", Run: sed},
		{Name: "seq", Usage: "[FIRST [STEP]] LAST", Short: "Print numbers", Run: seq},
		{Name: "sha1sum", Usage: "[FILE]...", Short: "Print or check SHA-1 sums", Run: sums},
		{Name: "sha256sum", Usage: "[FILE]...", Short: "Print or check SHA-256 sums", Run: sums},
		{Name: "sha512sum", Usage: "[FILE]...", Short: "Print or check SHA-512 sums", Run: sums},
		{Name: "sort", Usage: "[FILE]...", Short: "Sort lines", Run: sortLines},
		{Name: "strings", Usage: "[FILE]...", Short: "Print the text in binary files", Run: stringsIn},
		{Name: "tac", Usage: "[FILE]...", Short: "Print lines, last first", Run: tac},
		{Name: "tail", Usage: "[FILE]...", Short: "Print the last lines", Run: tail},
		{Name: "tee", Usage: "[FILE]...", Short: "Copy standard input to files and standard output", Run: tee},
		{Name: "tr", Usage: "SET [SET]", Short: "Translate or delete characters", Run: tr},
		{Name: "uniq", Usage: "[INPUT [OUTPUT]]", Short: "Drop repeated lines that follow one another", Run: uniq},
		{Name: "wc", Usage: "[FILE]...", Short: "Count lines, words and bytes", Run: wc},
		{Name: "xxd", Usage: "[FILE]", Short: "Print bytes as numbers and text, and back", Run: xxd},
		{Name: "zcat", Usage: "[FILE]...", Short: "Print .gz files", Run: gzipper},
	}
}
