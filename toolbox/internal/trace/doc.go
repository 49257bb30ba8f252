// SPDX-License-Identifier: Apache-2.0

// Package trace.
package trace

import "github.com/wherryproject/wherry/toolbox/internal/applet"

// Applets returns the package's commands.
func Applets() []applet.Applet { return nil }
