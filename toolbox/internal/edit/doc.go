// SPDX-License-Identifier: Apache-2.0

// Package edit.
package edit

import "github.com/wherryproject/wherry/toolbox/internal/applet"

// Applets returns the package's commands.
func Applets() []applet.Applet { return nil }
