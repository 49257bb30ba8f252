// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"slices"
	"strings"
)

// typists are the words with which lines of the pages begin that are for typing; what else stands in a block is output,
// or a file.
func typists() []string {
	return []string{
		"wherry", "bin/wherry", "sudo", "kubectl", "docker", "podman", "helm", "openssl", "make", "tar", "for",
		"export", "cd", "nft", "curl", "cat", "cp", "mkdir", "sha256sum", "echo", "systemctl", "ssh", "scp", "apt",
		"go", "sh", "git", "ctr",
	}
}

// Commands are the commands in the blocks of code of a page, whole, without the remarks behind them.
func Commands(text string) (all []string) {
	fenced, until := "", "" // the kind of block; what ends a command of several lines
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if mark, ok := strings.CutPrefix(line, "```"); ok {
			if fenced = mark; mark == "" {
				fenced = ""
			}
			continue
		}
		code, indented := strings.CutPrefix(line, "    ")
		if fenced == "sh" {
			code, indented = line, true
		}
		if !indented {
			until = ""
			continue
		}
		code = strings.TrimPrefix(code, "  ") // of a block in a list
		if until != "" {
			last := &all[len(all)-1]
			*last += "\n" + strings.TrimRight(strings.TrimPrefix(line, "    "), " ")
			if until == `\` && !strings.HasSuffix(code, `\`) || code == until {
				until = ""
			}
			continue
		}
		code = strings.TrimPrefix(code, "$ ")
		if word, _, _ := strings.Cut(code, " "); !slices.Contains(typists(), word) {
			continue
		}
		all = append(all, withoutRemark(code))
		if _, end, here := strings.Cut(code, "<<"); here {
			until = strings.Trim(strings.TrimSpace(end), "'")
		} else if strings.HasSuffix(code, `\`) {
			until = `\`
		}
	}
	return all
}

func withoutRemark(code string) string {
	if i := strings.Index(code, " # "); i >= 0 {
		code = code[:i]
	}
	return strings.TrimSpace(code)
}

// FirstLine is that of a command of several.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
