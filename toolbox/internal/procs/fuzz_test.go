// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FuzzProc reads a process, whose name and arguments it chose itself.
func FuzzProc(f *testing.F) {
	const rest = " S 1 2 3 34816 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23"
	f.Add([]byte("7 (a) b)"+rest), []byte("Name:\ta\nUid:\t1\t2\t3\t4\nGid:\t1\t2\t3\t4\n"), []byte("a\x00b\x00\x00"))
	f.Add([]byte("7 )("), []byte("Uid:"), []byte("\x00\x1b[2J"))
	f.Add([]byte("99999999999999999999 ()"+rest), []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, stat, status, cmdline []byte) {
		dir := t.TempDir()
		for name, data := range map[string][]byte{"stat": stat, "status": status, "cmdline": cmdline} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p, err := read(dir, time.Unix(1e9, 0))
		if err != nil {
			return
		}
		if p.Command() == "" && len(p.Args) == 0 {
			t.Errorf("%q: a process without a name", stat)
		}
		_ = terminalName(p.TTY)
	})
}

// FuzzSignal reads signals.
func FuzzSignal(f *testing.F) {
	for _, s := range []string{"9", "KILL", "SIGkill", "-1", "65", "SIG", "SIGSIGKILL"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseSignal(text); err == nil && (s < 0 || s > 64) {
			t.Errorf("%q is signal %d", text, s)
		}
	})
}
