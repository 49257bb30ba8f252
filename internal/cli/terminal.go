// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"

	"golang.org/x/term"
)

func terminalFile(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
