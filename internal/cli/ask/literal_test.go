// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"slices"
	"testing"
)

// DC-01: the words after -- reach a debug container as they were typed, though Kubernetes expands $$ and $(NAME) in its command; beside
// the containers, where it expands nothing, they go as they are.
func TestCommandsAreLiteral(t *testing.T) {
	for typed, sent := range map[string]string{
		"echo $$":                "echo $$$$",
		"echo $(hostname) $HOME": "echo $$(hostname) $$HOME",
		"kill $PPID":             "kill $PPID",
		"$":                      "$",
		"a$$$":                   "a$$$$$$",
	} {
		d := &Debug{}
		command := []string{"sh", "-c", typed}
		for what, s := range map[string]Session{"first": d.First("web", command), "add": d.Add("web", "x", command)} {
			if got := s.Query["command"]; !slices.Equal(got, []string{"sh", "-c", sent}) {
				t.Errorf("%s %q: %q, want %q", what, typed, got, sent)
			}
		}
		if got := d.Visit("web", command).Query["command"]; !slices.Equal(got, command) {
			t.Errorf("beside the containers, %q: %q", typed, got)
		}
		if got := PlainWords(sent); got[0] != typed {
			t.Errorf("%q is shown as %q", sent, got)
		}
	}
}
