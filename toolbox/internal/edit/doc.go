// SPDX-License-Identifier: Apache-2.0

// Package edit has the commands that take the whole screen: the pager less and the editor vi.
//
// Its law: the screen and the terminal's mode are restored whatever happens; a file is only written when one says so,
// and a write that fails does not cost what was in it. [Applets] lists them.
package edit

import "github.com/wherryproject/wherry/toolbox/internal/applet"

// Applets returns the package's commands.
func Applets() []applet.Applet {
	return []applet.Applet{
		{Name: "less", Usage: "[FILE]...", Short: "Show text page by page; h shows the keys", Run: less},
		{Name: "more", Usage: "[FILE]...", Short: "As less", Run: less},
		{Name: "vi", Usage: "[+LINE] [FILE]...", Short: "Edit text files; :help shows the keys", Run: vi},
	}
}
