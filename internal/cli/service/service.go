// SPDX-License-Identifier: Apache-2.0

package service

import (
	_ "embed"
	"strings"
	"text/template"
)

// Service is what is to be started.
type Service struct {
	Name    string   // of the unit and the script
	Program string   // absolute path of wherry
	Args    []string // its command line: server or agent, and flags
}

// mark is in every file of ours.
const mark = "Made by wherry service install"

//go:embed unit.txt
var unitText string

//go:embed script.txt
var scriptText string

// Unit is the service as a unit of systemd.
func (s Service) Unit() string { return s.fill(unitText, systemdWord) }

// Script is the service as a script for /etc/init.d.
func (s Service) Script() string { return s.fill(scriptText, shellWord) }

func (s Service) fill(text string, quote func(string) string) string {
	words := []string{quote(s.Program)}
	for _, a := range s.Args {
		words = append(words, quote(a))
	}
	var b strings.Builder
	t := template.Must(template.New("").Parse(text)) // ours, and tested
	if err := t.Execute(&b, map[string]string{"Mark": mark, "Name": s.Name, "What": s.Args[0],
		"Command": strings.Join(words, " ")}); err != nil {
		return "" // a builder takes everything
	}
	return b.String()
}

// plain are the characters that mean nothing to a shell and to systemd.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@"

func isPlain(word string) bool { return word != "" && strings.Trim(word, plain) == "" }

// systemdWord is a word of a command line as systemd.service(5) reads it.
func systemdWord(word string) string {
	word = strings.NewReplacer("%", "%%", "$", "$$").Replace(word)
	if isPlain(word) {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(word) + `"`
}

// shellWord is a word of a command line as a shell reads it.
func shellWord(word string) string {
	if isPlain(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
